#!/usr/bin/env bash
# Does Llama 3 70B fit on 64 GPUs? Memory of a rank of each stage, and over the step.
set -euo pipefail
lockstep simulate --model llama3-70b --gpus 64 --tp 8 --pp 4 --global-batch 32 --sp --zero 1 --topology Spectrum-X:g=64 \
  --quiet --figure "memory-over-time=$OUT/06-does-it-fit.svg" | sed -n '/^memory/,$p'
