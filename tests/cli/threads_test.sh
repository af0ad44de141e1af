#!/usr/bin/env bash
# The same bytes out on any number of threads: sweeps of collectives, sampled steps, the price of stragglers.
# Usage: threads_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# same <name> <command…>: runs it on 1, 2 and 5 threads
same() {
  local name=$1
  shift
  for threads in 1 2 5; do
    "$lockstep" "$@" --threads "$threads" >"$scratch/$threads.out" 2>"$scratch/$threads.err" ||
      { printf 'FAILED: %s: %s\n' "$name" "$(<"$scratch/$threads.err")" && exit 1; }
  done
  for threads in 2 5; do
    cmp "$scratch/1.out" "$scratch/$threads.out" || { printf 'FAILED: %s on %s threads\n' "$name" "$threads" && exit 1; }
    cmp "$scratch/1.err" "$scratch/$threads.err" || { printf 'FAILED: %s, messages\n' "$name" && exit 1; }
  done
  [[ -s "$scratch/1.out" ]] || { printf 'FAILED: %s says nothing\n' "$name" && exit 1; }
}

same sweep collective --op allreduce --size 8B:256MiB --topology Spectrum-X:g=32 --engine analytic,flow
same json collective --op alltoall --size 1KiB:16MiB --topology DCN+:g=32 --engine flow --json
same jitter collective --op broadcast --size 1MiB:4MiB --topology Spectrum-X:g=16 --jitter 1ms --seed 3
same price simulate --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=16 \
  --straggler gpu:0:2 --straggler gpu:3:1.5
same steps simulate --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=16 \
  --straggler jitter:0-7:normal:0.1 --steps 7 --seed 5 --json

# The first error by size, not by time, and one message.
for threads in 1 4; do
  if "$lockstep" collective --op allreduce --size 1KiB:1MiB --topology Spectrum-X:g=16 --algorithm nvls --protocol ll \
    --threads $threads >"$scratch/out" 2>"$scratch/$threads.err"; then
    printf 'FAILED: an impossible protocol is taken\n' && exit 1
  fi
done
cmp "$scratch/1.err" "$scratch/4.err"
