#!/usr/bin/env bash
# Which link should we upgrade? A tenth more of each tier's bandwidth and latency, each kind of
# computation and each collective: what the step gains, the most first.
set -euo pipefail
lockstep simulate --model llama3-8b --gpus 64 --tp 4 --pp 2 --global-batch 64 --sp --topology Spectrum-X:g=64 \
  --sensitivity --quiet --figure "sensitivity=$OUT/01-which-link-to-upgrade.svg" | sed -n '/a tenth/,$p'
