#!/usr/bin/env bash
# CPU seconds (user and system) and peak memory of whole steps on the flow engine, and how they grow with GPUs, microbatches and
# layers. Usage: steps.sh <lockstep> [bar|gpus|microbatches|layers]…     (default: all)
set -euo pipefail
lockstep=$1
shift
parts=("$@")
((${#parts[@]})) || parts=(bar gpus microbatches layers)

row() { # label, flags of simulate…
  local label=$1 report step
  shift
  report=$(mktemp)
  step=$(/usr/bin/time -f '%U %S %M' -o "$report" "$lockstep" simulate --engine flow --spray "$@" --json 2>/dev/null |
    sed -n 's/.*"total_s": \([0-9.e-]*\).*/\1/p' | sed -n 1p)
  read -r user system memory < <(tail -1 "$report")
  rm -f "$report"
  printf '%-44s %8s s CPU %6s MB   step %s s\n' "$label" "$(awk "BEGIN { print $user + $system }")" \
    "$((memory / 1024))" "$step"
}

# label, GPUs, microbatches, further flags: Llama 3 405B, tp 8, pp 16, contention on.
llama() {
  local label=$1 gpus=$2 microbatches=$3 pods=$(($2 / 8 < 16384 ? $2 / 8 : 16384))
  shift 3
  row "$label" --model llama3-405b --gpus "$gpus" --tp 8 --pp 16 --gbs $((gpus / 128 * microbatches)) \
    --topology "Spectrum-X:g=$gpus,app=$pods" "$@"
}

for part in "${parts[@]}"; do
  case $part in
    bar)
      row 'GPT-3 175B, 1024 GPUs' --model gpt3-175b --gpus 1024 --tp 8 --pp 16 --gbs 1536 --topology Spectrum-X:g=1024
      llama 'Llama 3 405B, 16384 GPUs' 16384 128
      llama 'the same and one with a slow GPU' 16384 128 --straggler gpu:5000:1.5
      llama 'Llama 3 405B, 131072 GPUs' 131072 128
      ;;
    gpus) for n in 1024 2048 4096 8192 16384 32768 65536; do llama "$n GPUs" $n 128; done ;;
    microbatches) for n in 16 32 64 128 256 512; do llama "$n microbatches, 4096 GPUs" 4096 $n; done ;;
    layers)
      for model in llama3-8b llama3-70b llama3-405b; do
        row "$model, 1024 GPUs, 32 microbatches" --model "$model" --gpus 1024 --tp 8 --pp 2 --gbs 2048 --topology Spectrum-X:g=1024
      done
      ;;
    *) echo "steps.sh: no part $part (bar, gpus, microbatches, layers)" >&2; exit 2 ;;
  esac
done
