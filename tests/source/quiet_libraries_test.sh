#!/usr/bin/env bash
# The libraries never print and never exit: only app/ (and programs under tests, bench and
# ns3-module) may. base/progress is the one exception: it draws on a terminal.
set -euo pipefail
pattern='\b(std::)?(printf|fprintf|puts|fputs|putchar|perror|abort|exit|_exit|quick_exit|terminate)\('
pattern+='|\bstd::(cout|cerr|clog)\b|\bfmt::print\(|\bassert\('

folders=()
for folder in base workloads topologies generator simulator trace analysis planner profiler report; do
  [[ ! -d $folder ]] || folders+=("$folder")
done
found=$(grep -rnE --include='*.cc' --include='*.h' "$pattern" "${folders[@]}" |
  grep -vE '^base/progress\.cc:|^[^:]+:[0-9]+: *(//|\*)' |
  grep -vE '^workloads/samples/make_samples\.cc:' || true)
if [[ -n $found ]]; then
  printf 'a library prints, exits or asserts (LOCKSTEP_CHECK is never compiled out):\n%s\n' "$found"
  exit 1
fi
