#!/usr/bin/env bash
# Where is the time? The critical path of a step, and the step as a timeline.
set -euo pipefail
lockstep simulate --model llama3-8b --gpus 32 --tp 4 --pp 4 --global-batch 16 --sp --topology Spectrum-X:g=32 --explain \
  --quiet --figure "timeline=$OUT/10-where-is-the-time.svg" | sed -n '/^critical path/,/^$/p'
