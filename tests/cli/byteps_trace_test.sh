#!/usr/bin/env bash
# BytePS's layout of a timeline: a folder for each local rank, the steps that its variables name.
# Usage: byteps_trace_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
step=(simulate --model llama3-8b --gpus 16 --tp 2 --pp 2 --zero 1 --global-batch 8 --seq-length 1024 --topology Spectrum-X:g=16)

"$lockstep" "${step[@]}" --steps 4 --byteps-trace "$out/all" >/dev/null
BYTEPS_TRACE_START_STEP=2 BYTEPS_TRACE_END_STEP=3 "$lockstep" "${step[@]}" --steps 4 --byteps-trace "$out/two" >/dev/null
for rank in 0 1 2 3 4 5 6 7; do
  [[ -f $out/all/$rank/comm.json && -f $out/two/$rank/comm.json ]] || { echo "no folder of rank $rank"; exit 1; }
done
[[ $(find "$out/all" -name comm.json | wc -l) == 8 ]] || { echo "one server has eight ranks"; exit 1; }
all=$(grep -c '"tid":"total"' "$out/all/0/comm.json")
two=$(grep -c '"tid":"total"' "$out/two/0/comm.json")
((all > 0 && all == 2 * two)) || { echo "4 steps have $all totals, 2 have $two"; exit 1; }
stages=$(grep -c '"name":"[^"]*\.\(REDUCE\|BROADCAST\)"' "$out/two/0/comm.json")
((stages == two)) || { echo "$two totals have $stages stages"; exit 1; }
# The reader of such files pairs each stage with its total.
"$lockstep" compare "$out/two/0/comm.json" --json >"$out/compared.json" 2>"$out/err" || true
! grep -q 'no total of their tensor\|without a stage' "$out/err" "$out/compared.json" || { echo "unpaired stages"; exit 1; }
if BYTEPS_TRACE_END_STEP=9 "$lockstep" "${step[@]}" --steps 4 --byteps-trace "$out/bad" 2>"$out/err"; then
  echo "step 9 of 4 was taken"
  exit 1
fi
grep -q "BYTEPS_TRACE_END_STEP: '9' is no step of the run" "$out/err" || { cat "$out/err"; exit 1; }
[[ ! -e $out/bad ]] || { echo "an output was touched"; exit 1; }
