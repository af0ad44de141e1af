#!/usr/bin/env bash
# Metis's two mixed clusters: the best sound plan of its list and its CPU seconds (Metis 4b24046, run on a
# machine of the same kind), beside our optimum.
# Usage: planner_metis.sh <lockstep> [<folder with Metis's runs and profiles>]
set -euo pipefail
lockstep=$1
data=${2:-${LOCKSTEP_REFERENCE:-../shared/reference}/planner/metis}
echo '| case | Metis ms | its CPU s | ours ms | CPU s |'
echo '|---|---|---|---|---|'
while read -r run theirs cpu; do
  "$lockstep" plan --metis-hostfile "$data/$run/input/hostfile" --metis-clusterfile "$data/$run/input/clusterfile.json" \
    --profiles "$data/profiles/prof_a100_t4" --layers 10 --gbs 128 --model-profile DeviceType.A100_tp2_bs2.json --json |
    python3 -c '
import json, sys
ours = json.load(sys.stdin)
print("| %s | %s | %s | %.2f | %.3f |" % (*sys.argv[1:], 1000 * ours["time_s"], ours["search_cpu_s"]))
' "$run" "$theirs" "$cpu"
done <<'CASES'
het_mix_4x4_readme 4006.41 1.58
het_mix22_4x4_readme 4465.66 1.21
CASES
