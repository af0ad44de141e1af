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
  for run in 1 2 3 4 5 6 7 8 9 10 11; do
    TIMEFORMAT='%U %S'
    { time "$lockstep" whatif --trace "$trace" --meta "$(dirname "$trace")/meta-$name.yaml" -o "$out/$name-$run" >/dev/null; } 2>&1
  done | awk '{ print $1 + $2 }' | sort -n |
    awk -v name="$name" '{ cpu[NR] = $1 } END { printf "%s: %.3f s of CPU, median of %d runs (least %.3f s)\n", name, cpu[int((NR + 1) / 2)], NR, cpu[1] }'
done
