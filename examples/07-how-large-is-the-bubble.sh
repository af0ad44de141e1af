#!/usr/bin/env bash
# How large is the pipeline's bubble, and what do two model chunks a stage bring?
set -euo pipefail
job=(--model llama3-8b --gpus 16 --tp 2 --pp 4 --global-batch 16 --topology Spectrum-X:g=16 --quiet)
lockstep simulate "${job[@]}" | sed -n '1p;/pipeline bubble/p'
lockstep simulate "${job[@]}" --vpp 2 --figure "pipeline=$OUT/07-how-large-is-the-bubble.svg" | sed -n '1p;/pipeline bubble/p'
