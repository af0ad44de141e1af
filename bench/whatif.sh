#!/usr/bin/env bash
# CPU seconds of `lockstep whatif` with all its outputs on each reference trace at hand.
# Usage: whatif.sh <lockstep> [<folder of traces>]
set -euo pipefail
lockstep=$1
traces=${2:-${LOCKSTEP_REFERENCE:-../shared/reference}/what-if}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for trace in "$traces"/*/trace-*.parquet; do
  name=$(basename "$trace" .parquet)
  name=${name#trace-}
  for _ in 1 2 3 4 5; do
    TIMEFORMAT='%U %S'
    { time "$lockstep" whatif --trace "$trace" --meta "$(dirname "$trace")/meta-$name.yaml" -o "$out" >/dev/null; } 2>&1
  done | awk -v name="$name" '{ total += $1 + $2 } END { printf "%s: %.3f s of CPU, mean of %d runs\n", name, total / NR, NR }'
done
