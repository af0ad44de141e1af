#!/usr/bin/env bash
# How often should we write checkpoints, and what do failures cost? 16,384 GPUs that each fail every
# 5.8 years.
set -euo pipefail
goodput=(lockstep goodput --step 5.2s --tokens 16777216 --gpus 16384 --gpu-mtbf 5.8y --checkpoint 20s --restart 10min)
"${goodput[@]}" --quiet
"${goodput[@]}" --json >"$OUT/weeks.json"
lockstep report "$OUT/weeks.json" --figure "goodput=$OUT/09-how-often-to-checkpoint.svg"
