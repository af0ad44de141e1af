#!/usr/bin/env bash
# What a command reads it does not replace, nor one of its outputs by another: exit code 2, and the
# file is as it was. What it goes on from, a journal or a table of its own, it may write anew.
# Usage: kept_inputs_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { printf 'FAILED: %s\n' "$1" && failures=1; }

# refused FILE COMMAND…: exit code 2 with a message that names the file, which stays as it was.
refused() {
  local file=$1 code=0
  shift
  cp "$file" "$scratch/before"
  "$lockstep" "$@" -q >"$scratch/out" 2>"$scratch/err" || code=$?
  [[ $code -eq 2 ]] || fail "$*: exit code $code"
  grep -q "$(basename "$file").*is also an" "$scratch/err" || fail "$*: $(cat "$scratch/err")"
  cmp -s "$file" "$scratch/before" || fail "$*: the file is another one"
}

cp tests/data/simulate/tiny.txt "$scratch/in.txt"
cp tests/data/logs/two-tables.txt "$scratch/log.txt"
cp tests/data/whatif/two-stages.csv tests/data/whatif/two-stages.yaml tests/data/sweep/engines.yaml "$scratch"
cp tests/golden/simulate/flow.json "$scratch"
ln "$scratch/in.txt" "$scratch/hard.txt"
ln -s in.txt "$scratch/soft.txt"
"$lockstep" topology build --template Spectrum-X -g 8 -o "$scratch/net.txt" -q
simulate=(simulate --workload "$scratch/in.txt" --topology Spectrum-X:g=8)
for name in in hard soft; do
  refused "$scratch/$name.txt" "${simulate[@]}" --report "$scratch/$name.txt"
done
refused "$scratch/in.txt" simulate --workload - --topology Spectrum-X:g=8 --report "$scratch/in.txt" <"$scratch/in.txt"
refused "$scratch/net.txt" topology draw "$scratch/net.txt" -o "$scratch/net.txt"
refused "$scratch/log.txt" calibrate "$scratch/log.txt" -o "$scratch/log.txt"
refused "$scratch/log.txt" compare "$scratch/log.txt" --report "$scratch/log.txt"
refused "$scratch/flow.json" report "$scratch/flow.json" -o "$scratch/flow.json"
refused "$scratch/two-stages.csv" whatif --trace "$scratch/two-stages.csv" --meta "$scratch/two-stages.yaml" \
  -o "$scratch/whatif" --report "$scratch/two-stages.csv"
refused "$scratch/engines.yaml" sweep "$scratch/engines.yaml" -o "$scratch/sweep" --report "$scratch/engines.yaml"
if command -v "$(dirname "$lockstep")/lockstep-packet" >/dev/null; then
  refused "$scratch/in.txt" "${simulate[@]}" --engine packet --fct "$scratch/in.txt"
fi

# What fails leaves no other file, either.
if ! "$lockstep" --version | grep -q "ECharts .*not built in"; then
  refused "$scratch/flow.json" report "$scratch/flow.json" --figure "time=$scratch/t.svg" -o "$scratch/flow.json"
  [[ ! -e $scratch/t.svg ]] || fail "a figure is written though the page is refused"
fi

# Two outputs that are one file.
refused "$scratch/sweep/table.csv" sweep "$scratch/engines.yaml" -o "$scratch/sweep" --report "$scratch/sweep/table.csv"
refused "$scratch/sweep/journal.jsonl" sweep "$scratch/engines.yaml" -o "$scratch/sweep" --report "$scratch/sweep/journal.jsonl"
plan=(plan --aceso-model scale-layer --aceso-size 4layers --profiles tests/data/plan/scale-layer --gpus-per-node 2
  --nodes 2 --memory-limit 1200 --global-batch 16 --micro-batch 1 2)
code=0
"$lockstep" "${plan[@]}" --resume "$scratch/r.jsonl" --report "$scratch/r.jsonl" >"$scratch/out" 2>"$scratch/err" || code=$?
[[ $code -eq 2 ]] && grep -q "r.jsonl: is also an" "$scratch/err" || fail "a fresh journal as report: $code, $(cat "$scratch/err")"
refused "$scratch/r.jsonl" "${plan[@]}" --resume "$scratch/r.jsonl" --report "$scratch/r.jsonl"

# Once more over what a command wrote before.
for _ in 1 2; do
  "$lockstep" "${plan[@]}" --resume "$scratch/r.jsonl" --report "$scratch/r.html" -o "$scratch/plan" -q >/dev/null || fail "plan again"
  printf '{"torn' >>"$scratch/r.jsonl"
  "$lockstep" sweep "$scratch/engines.yaml" -o "$scratch/sweep" --report "$scratch/sweep/r.html" -q >/dev/null || fail "sweep again"
  "$lockstep" "${simulate[@]}" --trace "$scratch/t.json" --report "$scratch/s.html" -q >/dev/null || fail "simulate again"
done
exit $failures
