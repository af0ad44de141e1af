#!/usr/bin/env bash
# Hygiene of the tracked files: plain names, small, run bits set, no source compiled into two libraries, every
# source compiled.
# Usage: tree_test.sh <compile_commands.json>
set -euo pipefail
compiled=$1
failed=0
complain() {
  printf '%s\n' "$@"
  failed=1
}

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  while read -r path; do
    [[ $path =~ ^[A-Za-z0-9_./+-]*[A-Za-z0-9_][A-Za-z0-9_./+-]*$ ]] || complain "$path: an odd name"
    [[ ! -f $path ]] || (($(stat -c %s "$path") <= 1048576)) || complain "$path: over 1 MiB"
  done < <(git ls-files)
  while read -r path; do
    [[ ! -f $path || -x $path ]] || complain "$path: has a #! line but no run bit"
  done < <(git ls-files -z | xargs -0 grep -lIE -m1 '^#!' -- 2>/dev/null |
    xargs awk 'FNR == 1 && /^#!/ { print FILENAME }')
fi

# One object a source: two would drift apart in their flags, and double the build.
sources=$(tests/source/compiled.py "$compiled" | grep "^$PWD/" | grep -v "^$PWD/build" |
  grep -v 'tests/fuzz/plain_main.cc' || true)
(($(wc -l <<<"$sources") > 20)) || complain "only $(wc -l <<<"$sources") sources in $compiled"
doubled=$(sort <<<"$sources" | uniq -d)
[[ -z $doubled ]] || complain "compiled more than once:" "$doubled"

while read -r path; do
  grep -qxF "$PWD/$path" <<<"$sources" || complain "$path: compiled by no target"
done < <(find base workloads topologies generator simulator trace analysis report app -name '*.cc' |
  grep -vE '^trace/parquet/|^app/sweep/mpi_crew|script_engine.cc' | sort)  # compiled where Arrow, MPI and ECharts are, or are not

exit "$failed"
