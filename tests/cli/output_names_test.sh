#!/usr/bin/env bash
# An output without a name is refused by its flag; links that go round in circles are told; "-" is
# standard output, even beside a folder of that name, and no folder.
# Usage: output_names_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
ln -s loop "$scratch/loop"

# refused TEXT COMMAND…: exit code 2 with a message that holds the text.
refused() {
  local text=$1 code=0
  shift
  "$lockstep" "$@" -q >"$scratch/out" 2>"$scratch/err" || code=$?
  if [[ $code -ne 2 ]] || ! grep -qe "$text" "$scratch/err" || grep -q "filesystem error" "$scratch/err"; then
    printf 'FAILED: %s: exit code %s, %s\n' "$*" "$code" "$(<"$scratch/err")"
    failures=1
  fi
}
simulate=(simulate --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=8)
plan=(plan --aceso-model scale-layer --aceso-size 4layers --profiles tests/data/plan/scale-layer --gpus-per-node 2
  --nodes 2 --memory-limit 1200 --global-batch 16 --micro-batch 1 2)
for flag in --report --trace --csv --figure --fct --pfc --memory-csv --byteps-trace; do
  refused "^lockstep: $flag: the name is empty" "${simulate[@]}" "$flag" ""
done
refused "^lockstep: --report: the name is empty" "${simulate[@]}" --report=
refused "^lockstep: --picture: the name is empty" compare tests/data/logs/two-tables.txt --picture ""
refused "^lockstep: --output: the name is empty" calibrate tests/data/logs/two-tables.txt -o ""
refused "^lockstep: --output: the name is empty" "${plan[@]}" -o ""
refused "^lockstep: --resume: the name is empty" "${plan[@]}" --resume ""
refused "^lockstep: --output: the name is empty" topology draw Spectrum-X:g=8 -o ""
refused "loop: --csv: .*symbolic links" "${simulate[@]}" --csv "$scratch/loop"
refused "loop: cannot write.*symbolic links" "${plan[@]}" --resume "$scratch/loop"
if ! "$lockstep" --version | grep -q "ECharts .*not built in"; then
  refused "loop.*--report" "${simulate[@]}" --report "$scratch/loop/r.html"
fi
data=$PWD/tests/data
cd "$scratch"
refused "^lockstep: -: standard output takes one file" "${simulate[@]/tests\/data/$data}" --csv -
refused "^lockstep: -: standard output takes one file" "${plan[@]/tests\/data/$data}" -o -
refused "^lockstep: -: standard output takes one file" whatif --trace "$data/whatif/two-stages.csv" \
  --meta "$data/whatif/two-stages.yaml" -o -
mkdir -p -- -
("$lockstep" topology build -g 8 -o - -q >topology.txt &&
  "$lockstep" generate --generator micro -o - -q >micro.txt) || failures=1
if [[ ! -s topology.txt || ! -s micro.txt || -n $(ls -A ./-) ]]; then
  printf 'FAILED: -o - beside a folder of that name\n'
  failures=1
fi
exit $failures
