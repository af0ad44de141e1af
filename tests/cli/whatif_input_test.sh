#!/usr/bin/env bash
# Traces that are not as they should be: each is a clear error with exit code 2 and no traceback of
# ours, or is mended, with a count, and then gives the documents of the trace as it was.
# Usage: whatif_input_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trace=tests/data/whatif/two-stages.csv
failed=0
run() { "$lockstep" whatif --trace "$out/t.csv" --meta tests/data/whatif/two-stages.yaml --decompose-threshold 0.9 -o "$out/$1" >"$out/text" 2>"$out/messages"; }
# refused <what> <expected message>: the trace on stdin is an error.
refused() {
  cat >"$out/t.csv"
  local code=0
  run refused || code=$?
  { [[ $code == 2 ]] && grep -q -- "$2" "$out/messages" && [[ ! -e $out/refused ]]; } ||
    { echo "FAILED: $1: exit code $code, wanted '$2' in:"; cat "$out/messages"; failed=1; }
}
# mended <what> <expected warning, or nothing>: the trace on stdin gives the documents of the good one.
mended() {
  cat >"$out/t.csv"
  rm -rf "$out/mended"
  run mended || { echo "FAILED: $1:"; cat "$out/messages"; failed=1; return; }
  if [[ -n $2 ]]; then
    grep -q -- "warning: .*$2" "$out/messages" || { echo "FAILED: $1: wanted '$2' in:"; cat "$out/messages"; failed=1; }
  else
    [[ ! -s $out/messages ]] || { echo "FAILED: $1: unexpected:"; cat "$out/messages"; failed=1; }
  fi
  for name in result ms mw causes; do
    cmp "$out/good/$name-two-stages.json" "$out/mended/$name-two-stages.json" || { echo "FAILED: $1"; failed=1; }
  done
}
cp "$trace" "$out/t.csv"
run good
gzip -c "$trace" >"$out/packed.csv.gz"
"$lockstep" whatif --trace "$out/packed.csv.gz" --meta tests/data/whatif/two-stages.yaml --decompose-threshold 0.9 -o "$out/packed" >/dev/null
cmp "$out/good/result-two-stages.json" "$out/packed/result-two-stages.json" || { echo 'FAILED: a packed trace'; failed=1; }
row='^0,1,1,1,backward-send,[^,]*,[^,]*,1,' # the second of them on stage 1
grep -q "$row" "$trace"
(head -n 1 "$trace"; tail -n +2 "$trace" | tac) | mended "rows in another order" ""
awk -F, -v OFS=, '{ t = $1; $1 = $11; $11 = t; print $0, NR == 1 ? "colour" : "red" }' "$trace" | mended "columns in another order, and a further one" ""
(cat "$trace"; grep "$row" "$trace") | mended "a repeated row" "1 repeated rows left out"
sed '2,$s/^\([0-9]*\),\([0-9]*\),/\1.0,\2,/' "$trace" | mended "whole numbers with a point" "26 whole numbers read from floating-point ones"
sed 's/,-1,-1,-1\r*$/,,,/' "$trace" | mended "absent chunks" "missing values of mc, mb_id and gmc taken as -1"
awk -F, -v OFS=, 'NR > 1 { $11 = -1 } { print }' "$trace" | mended "passes without the model's chunk" "have no gmc"
grep -v "$row" "$trace" | refused "a missing operation" "backward-send"
awk -F, -v OFS=, '$5 == "optimizer" && $2 == 1 { next } { print }' "$trace" | refused "a stage without its end" "optimizer"
(cat "$trace"; grep "$row" "$trace" | awk -F, -v OFS=, '{ $7 = 9; print }') | refused "a row twice, with different times" "stands twice, with different times"
sed "s/\($row\)/x\1/" "$trace" | refused "a rank that is no number" "dp_rank: 'x0'"
awk -F, -v OFS=, 'NR == 5 { $7 = -0.25 } { print }' "$trace" | refused "a negative duration" "row 4: -0.25 is negative"
awk -F, -v OFS=, 'NR == 5 { $6 = "nan" } { print }' "$trace" | refused "a start that is no number" "t.csv:5: start_ts: 'nan'"
awk -F, -v OFS=, 'NR == 5 { $7 = "" } { print }' "$trace" | refused "no duration" "t.csv:5: duration: the value is missing"
awk -F, -v OFS=, 'NR == 5 { $5 = "forward-compote" } { print }' "$trace" | refused "an unknown optype" "did you mean forward-compute"
cut -d, -f1-10 "$trace" | refused "a missing column" "no column gmc"
head -n 1 "$trace" | refused "no rows" "no rows"
awk -F, -v OFS=, '$5 == "forward-send" || $5 == "backward-recv" { next } { print }' "$trace" | refused "receives without sends" "forward-recv"
exit "$failed"
