#!/usr/bin/env bash
# Which plan is best when memory is short? Every plan of a small model on four GPUs that nothing beats
# in both time and memory.
set -euo pipefail
lockstep plan --aceso-model scale-layer --aceso-size 4layers --profiles tests/data/plan/scale-layer \
  --gpus-per-node 2 --nodes 2 --memory-limit 1200 --global-batch 16 --micro-batch 1 2 --quiet \
  --figure "pareto=$OUT/08-best-plan.svg" | grep -v 'of CPU'
