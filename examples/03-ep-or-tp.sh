#!/usr/bin/env bash
# Does EP 8 or TP 8 win here? The same mixture of experts on the same 64 GPUs, cut in two ways.
set -euo pipefail
job=(--model mixtral-8x7b --gpus 64 --global-batch 64 --seq 4096 --topology Spectrum-X:g=64 --quiet --json)
lockstep simulate "${job[@]}" --tp 8 --sp >"$OUT/tp8.json"
lockstep simulate "${job[@]}" --ep 8 >"$OUT/ep8.json"
for cut in tp8 ep8; do
  printf '%s: %s s a step\n' "$cut" "$(sed -n 's/^  "total_s": \([0-9.e-]*\),$/\1/p' "$OUT/$cut.json")"
done
cd "$OUT"  # so that the figure has the files' names alone
lockstep report tp8.json ep8.json --figure runs=03-ep-or-tp.svg
