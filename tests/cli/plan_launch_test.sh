#!/usr/bin/env bash
# megatron.sh starts as many ranks as the plan has, though its GPUs fill no whole servers.
# Usage: plan_launch_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ranks() {  # GPUs, topology: ranks a server, servers
  "$lockstep" plan --model llama3-8b --num_layers 2 --gpus "$1" --gbs "$1" --seq 1024 --mbs 1 --tp 1 --cp 1 --pp 1 \
    --zero 0 --recompute none --max-memory 1TB --topology "$2" -o "$scratch" -q >/dev/null 2>&1
  sed -n 's/.*--nproc-per-node \([0-9]*\) --nnodes \([0-9]*\).*/\1 \2/p' "$scratch/megatron.sh"
}
while read -r gpus topology expected; do
  found=$(ranks "$gpus" "$topology")
  [[ $found == "$expected" ]] || { printf 'FAILED: %s of %s: %s\n' "$gpus" "$topology" "$found"; exit 1; }
done <<'T'
16 Spectrum-X:g=16 8 2
6 Spectrum-X:g=16 6 1
12 Spectrum-X:g=16 4 3
4 heterogeneous:gpus-a=1,gpus-per-server-a=1,gpus-b=3,gpus-per-server-b=3,type-b=H100 1 4
T
