#!/usr/bin/env bash
# CPU seconds (user and system, both processes) and peak memory of the packet engine on recorded SimAI
# runs, every packet and with fast-forward.
# Usage: packet_engine.sh <lockstep> [run…]     ($LOCKSTEP_REFERENCE, default ../shared/reference)
set -euo pipefail
lockstep=$1
shift
runs=("$@")
((${#runs[@]})) || runs=(ar_16M_8 ar_16M_128 ar_128M_64 ar_1G_8 llm2_64)
reference=${LOCKSTEP_REFERENCE:-../shared/reference}/simai

printf '%-22s %12s %12s %12s %10s\n' run 'every packet' 'skipping' 'step us' 'memory'
for run in "${runs[@]}"; do
  folder=$reference/$run
  latency=$(sed -n 's/.*AS_SEND_LAT=\([0-9]*\).*/\1/p' "$folder/cmd.txt")
  row=()
  for skip in false true; do
    report=$(mktemp)
    step=$(/usr/bin/time -f '%U %S %M' -o "$report" "$lockstep" simulate --engine packet --flavour simai \
      --workload "$folder/workload.txt" --topology "$folder/topo" --send-latency "${latency:-6000}us" \
      --conf "$folder/SimAI.conf" --fabric "FastForward=$skip" --json | sed -n 's/.*"total_s": \([0-9.e-]*\).*/\1/p' | head -1)
    read -r user system memory <"$report"
    rm -f "$report"
    row+=("$(awk "BEGIN { print $user + $system }") s")
  done
  printf '%-22s %12s %12s %12s %7s MB\n' "$run" "${row[0]}" "${row[1]}" \
    "$(awk "BEGIN { printf \"%.3f\", $step * 1e6 }")" "$((memory / 1024))"
done
