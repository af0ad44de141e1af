#!/usr/bin/env bash
# CPU seconds (user and system, both processes) and peak memory of the packet engine on recorded SimAI
# runs: every packet, with fast-forward, and within 1 %. And of whole steps within 1 %.
# Usage: packet_engine.sh <lockstep> [run…|steps]     ($LOCKSTEP_REFERENCE, default ../shared/reference)
set -euo pipefail
lockstep=$1
shift
runs=("$@")
((${#runs[@]})) || runs=(ar_16M_8 ar_16M_128 ar_128M_64 ar_1G_8 llm2_64 steps)
reference=${LOCKSTEP_REFERENCE:-../shared/reference}/simai

# flags of simulate…: sets seconds, step (us), error (us), memory (MB)
measure() {
  local report json user system kb
  report=$(mktemp)
  json=$(/usr/bin/time -f '%U %S %M' -o "$report" "$lockstep" simulate --engine packet "$@" --json 2>/dev/null)
  read -r user system kb < <(tail -1 "$report")
  rm -f "$report"
  seconds=$(awk "BEGIN { print $user + $system }")
  memory=$((kb / 1024))
  step=$(sed -n 's/.*"total_s": \([0-9.e-]*\).*/\1/p' <<<"$json" | head -1)
  error=$(sed -n 's/^  "error_s": \([0-9.e-]*\).*/\1/p' <<<"$json" | head -1)
}

steps() {
  local label=$1
  shift
  measure "$@" --error-budget 1%
  printf '%-42s %9s s %7s MB   step %s s +- %s\n' "$label" "$seconds" "$memory" "$step" "${error:-0}"
}

printf '%-22s %12s %12s %12s %12s %12s %10s\n' run 'every packet' 'skipping' 'step us' 'within 1 %' 'step us' 'memory'
for run in "${runs[@]}"; do
  if [[ $run == steps ]]; then
    steps 'GPT-13B, 128 GPUs' --workload workloads/samples/gpt13b-128gpu-tp8.txt --topology Spectrum-X:g=128
    steps 'GPT-3 175B, 1024 GPUs, pp 16, 192 microbatches' --model gpt3-175b --gpus 1024 --tp 8 --pp 16 \
      --gbs 1536 --topology Spectrum-X:g=1024,npa=128
    continue
  fi
  folder=$reference/$run
  latency=$(sed -n 's/.*AS_SEND_LAT=\([0-9]*\).*/\1/p' "$folder/cmd.txt")
  flags=(--flavour simai --workload "$folder/workload.txt" --topology "$folder/topo"
    --send-latency "${latency:-6000}us" --conf "$folder/SimAI.conf")
  measure "${flags[@]}" --fabric FastForward=false
  full=$seconds
  measure "${flags[@]}"
  skipping=$seconds exact=$step peak=$memory
  measure "${flags[@]}" --error-budget 1%
  printf '%-22s %10s s %10s s %12s %10s s %12s %7s MB\n' "$run" "$full" "$skipping" \
    "$(awk "BEGIN { printf \"%.3f\", $exact * 1e6 }")" "$seconds" \
    "$(awk "BEGIN { printf \"%.3f\", $step * 1e6 }")" "$peak"
done
