#!/usr/bin/env bash
# --fct holds the transfers of the step that was asked for, not of the run without stragglers or of
# the further steps that it is compared with.
# Usage: packet_records_test.sh <lockstep>
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
records() { # file, further flags…
  local file=$1
  shift
  "$lockstep" simulate --engine packet --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=8 \
    --fct "$scratch/$file" "$@" >/dev/null || exit 1
}
lockstep=$1
records clean.txt
records slow.txt --straggler gpu:0:3
records steps.txt --straggler gpu:0:3 --straggler jitter:1:normal:0.3 --seed 5
records more-steps.txt --straggler gpu:0:3 --straggler jitter:1:normal:0.3 --seed 5 --steps 4
[[ -s $scratch/slow.txt ]] || { echo 'no records'; exit 1; }
if cmp -s "$scratch/clean.txt" "$scratch/slow.txt"; then
  echo 'the records are those of the run without the slow GPU'
  exit 1
fi
cmp "$scratch/steps.txt" "$scratch/more-steps.txt"
