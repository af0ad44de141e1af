#!/usr/bin/env bash
# A trace file of 10,000 workers (16 stages, 48 microbatches, one slow GPU in five replicas, repeated)
# analysed by `lockstep whatif`. Usage: whatif_large.sh <lockstep> <python with pyarrow> [steps]
set -euo pipefail
lockstep=$1 python=$2 steps=${3:-100}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$lockstep" simulate --model gpt3-13b --gpus 80 --tp 1 --pp 16 --global-batch 240 --micro-batch 1 \
  --topology Spectrum-X:g=80 --straggler gpu:7:1.3 --trace "$folder/small.csv" >/dev/null
"$python" "$(dirname "$0")/whatif_large_trace.py" "$folder/small.csv" "$folder/large.parquet" 625 "$steps"
printf 'trial_name: large\ndp_size: 625\npp_size: 16\nworld_size: 10000\n' >"$folder/large.yaml"
ls -l "$folder/large.parquet" | awk '{ printf "%.1f GB of Parquet\n", $5 / 1e9 }'
TIMEFORMAT='%U s user, %S s system, %R s in all'
time "$lockstep" whatif --trace "$folder/large.parquet" --meta "$folder/large.yaml" -o "$folder/out"
