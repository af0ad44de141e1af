#!/usr/bin/env bash
# Aceso's problems: what its own search found and the CPU seconds that took, beside ours.
# Theirs: SuperScaler fa80ad0 run on one machine, all numbers of stages together; those in
# parentheses are what its authors report, wall seconds of its time budget.
# Usage: planner_aceso.sh <lockstep> [<folder with Aceso's profile databases>]
#   WANTED=word: only rows that have it in their name; ALL32=1: every size of the large set on 32 GPUs, too
set -euo pipefail
lockstep=$1
data=${2:-${LOCKSTEP_REFERENCE:-../shared/reference}/planner/aceso}

row() {  # name, their ms, their CPU s, flags…
  local name=$1 theirs=$2 cpu=$3
  shift 3
  [[ $name == *"${WANTED:-}"* ]] || return 0
  "$lockstep" plan "$@" --json 2>/dev/null | python3 -c '
import json, sys
name, theirs, cpu = sys.argv[1:]
ours = json.load(sys.stdin)
bound = "proven" if ours["exact"] else "gap %.2f %%" % (100 * ours["gap"])
print("| %s | %s | %s | %.2f | %s | %.3f |" % (name, theirs, cpu, 1000 * ours["time_s"], bound, ours["search_cpu_s"]))
' "$name" "$theirs" "$cpu"
}
echo '| case | Aceso ms | its CPU s | ours ms | bound | CPU s |'
echo '|---|---|---|---|---|---|'
small=(--profiles "$data/profiled-time-miniset" --gpus-per-node 4 --memory-limit 12000)
large=(--profiles "$data/profiled-time-eurosys" --memory-limit 28000)
images=(--micro-batch 16 32 48 64)
row 'gpt 1_3B small' 58760.92 98 --aceso-model gpt --aceso-size 1_3B "${small[@]}" --global-batch 512
row 't5 770M small' 33659.50 101 --aceso-model t5 --aceso-size 770M "${small[@]}" --global-batch 512
row 'resnet 1B small' 17672.05 67 --aceso-model resnet --aceso-size 1B "${small[@]}" --global-batch 768 "${images[@]}"
row 'gpt 350M, 1 GPU' 200710 - --aceso-model gpt --aceso-size 350M "${large[@]}" --gpus-per-node 1 --global-batch 1024
row 't5 770M, 1 GPU' 322610 - --aceso-model t5 --aceso-size 770M "${large[@]}" --gpus-per-node 1 --global-batch 1024
row 'resnet 500M, 1 GPU' 66990 - --aceso-model resnet --aceso-size 500M "${large[@]}" --gpus-per-node 1 --global-batch 1536 "${images[@]}"
row 'gpt 1_3B large' 101184.98 73 --aceso-model gpt --aceso-size 1_3B "${large[@]}" --gpus-per-node 4 --global-batch 1024
row 'gpt 2_6B large' 87133.80 255 --aceso-model gpt --aceso-size 2_6B "${large[@]}" --gpus-per-node 8 --global-batch 1024
row 'resnet 2B large' 49324.11 95 --aceso-model resnet --aceso-size 2B "${large[@]}" --gpus-per-node 4 --global-batch 1536 "${images[@]}"
row 'gpt 6_7B, 16 GPUs' 87320 '(200 s wall)' --aceso-model gpt --aceso-size 6_7B "${large[@]}" --nodes 2 --global-batch 1024
row 'gpt 13B, 32 GPUs' 84610 '(201 s wall)' --aceso-model gpt --aceso-size 13B "${large[@]}" --nodes 4 --global-batch 1024
row 'resnet 4B, 8 GPUs' 56520 '(206 s wall)' --aceso-model resnet --aceso-size 4B "${large[@]}" --global-batch 1536 "${images[@]}"
row 'resnet 6_8B, 16 GPUs' 45670 '(225 s wall)' --aceso-model resnet --aceso-size 6_8B "${large[@]}" --nodes 2 --global-batch 1536 "${images[@]}"
row 'resnet 13B, 32 GPUs' 47600 '(222 s wall)' --aceso-model resnet --aceso-size 13B "${large[@]}" --nodes 4 --global-batch 1536 "${images[@]}"
row 't5 3B, 4 GPUs' - - --aceso-model t5 --aceso-size 3B "${large[@]}" --gpus-per-node 4 --global-batch 1024
row 't5 6B, 8 GPUs' - - --aceso-model t5 --aceso-size 6B "${large[@]}" --global-batch 1024
row 't5 11B, 16 GPUs' - - --aceso-model t5 --aceso-size 11B "${large[@]}" --nodes 2 --global-batch 1024
row 't5 22B, 32 GPUs' - - --aceso-model t5 --aceso-size 22B "${large[@]}" --nodes 4 --global-batch 1024
row '1,024 layers, 8 GPUs' - '(246 s wall)' --aceso-model scale-layer --aceso-size 1024layers "${large[@]}" --global-batch 1024 --spare-memory 1000
[[ -n ${ALL32:-} ]] || exit 0
for size in 350M 1_3B 2_6B 6_7B; do
  row "gpt $size, on 32 GPUs" - - --aceso-model gpt --aceso-size $size "${large[@]}" --nodes 4 --global-batch 1024
done
for size in 770M 3B 6B 11B; do
  row "t5 $size, on 32 GPUs" - - --aceso-model t5 --aceso-size $size "${large[@]}" --nodes 4 --global-batch 1024
done
for size in 500M 2B 4B 6_8B; do
  row "resnet $size, on 32 GPUs" - - --aceso-model resnet --aceso-size $size "${large[@]}" --nodes 4 --global-batch 1536 "${images[@]}"
done
