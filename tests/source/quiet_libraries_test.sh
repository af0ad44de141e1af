#!/usr/bin/env bash
# The libraries never print and never exit: only app/ (and programs under tests, bench and
# ns3-module) may. base/progress draws on a terminal, and base/file's handler of SIGBUS (an input that
# became shorter while it was read) can only end the program: these are the exceptions.
set -euo pipefail
pattern='\b(std::)?(printf|fprintf|puts|fputs|putchar|perror|abort|exit|_exit|quick_exit|terminate)\('
pattern+='|\bstd::(cout|cerr|clog)\b|\bfmt::print\(|\bassert\('

folders=()
for folder in base workloads topologies generator simulator trace analysis planner profiler report; do
  [[ ! -d $folder ]] || folders+=("$folder")
done
found=$(grep -rnE --include='*.cc' --include='*.h' "$pattern" "${folders[@]}" |
  grep -vE '^base/progress\.cc:|^base/file\.cc:[0-9]+: *::_exit\(2\);|^[^:]+:[0-9]+: *(//|\*)' |
  grep -vE '^workloads/samples/make_samples\.cc:' || true)
if [[ -n $found ]]; then
  printf 'a library prints, exits or asserts (LOCKSTEP_CHECK is never compiled out):\n%s\n' "$found"
  exit 1
fi
