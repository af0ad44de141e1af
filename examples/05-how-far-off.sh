#!/usr/bin/env bash
# How far off are the predictions on our cluster, and why? A log of nccl-tests beside them, here a short
# made-up one whose network is not the preset's.
set -euo pipefail
lockstep compare tests/data/logs/two-tables.txt --quiet --figure "accuracy=$OUT/05-how-far-off.svg" |
  grep -E 'all sizes|^all|1 MiB|worst rows|bound'
