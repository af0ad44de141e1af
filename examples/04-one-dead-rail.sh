#!/usr/bin/env bash
# What does one dead rail cost? Rail 3 of a rail-optimised fabric keeps a tenth of its bandwidth, as
# when all but a tenth of its traffic has to go round.
set -euo pipefail
lockstep simulate --model llama3-8b --gpus 64 --tp 8 --global-batch 64 --sp --topology Spectrum-X:g=64 \
  --straggler rail:3:0.1 --quiet --figure "stragglers=$OUT/04-one-dead-rail.svg" | sed -n '/^stragglers/,/^$/p'
