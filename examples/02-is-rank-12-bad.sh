#!/usr/bin/env bash
# Is rank 12 bad? Two steps of a job are traced, here from a simulation in which GPU 12 takes 1.5 times
# as long; what-if says which worker slows the job, by how much, and what mending it brings.
set -euo pipefail
lockstep simulate --model llama3-8b --gpus 32 --pp 2 --global-batch 64 --topology Spectrum-X:g=32 \
  --straggler gpu:12:1.5 --steps 2 --trace "$OUT/rank12.csv" --quiet >/dev/null
lockstep whatif --trace "$OUT/rank12.csv" --meta "$OUT/rank12.yaml" -o "$OUT/rank12" --timelines none --quiet \
  --figure "heatmap=$OUT/02-is-rank-12-bad.svg" | grep -v '^written'
