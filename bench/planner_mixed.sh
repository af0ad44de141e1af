#!/usr/bin/env bash
# Clusters of two GPU types: what each type alone does at best, all GPUs with pipelines of one type
# each, all with pipelines across types, and what the search picks, by the replay with contention.
# Usage: planner_mixed.sh <lockstep>
#   WANTED=word: only rows that have it in their name
set -euo pipefail
lockstep=$1

row() {  # name, flags…
  local name=$1
  shift
  [[ $name == *"${WANTED:-}"* ]] || return 0
  python3 - "$name" "$lockstep" plan "$@" --threads 1 --json <<'P'
import json, resource, subprocess, sys
name, command = sys.argv[1], sys.argv[2:]
plan = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
best = {family["family"]: family["step_s"] for family in plan["families"] if family["step_s"]}
alone = [best.get(pool["gpu_type"] + " alone") for pool in plan["pools"]]
text = lambda seconds: "-" if seconds is None else "%.4g" % seconds
gap = "proven" if plan["proven"] else "gap %.2f %%" % (100 * plan["gap"])
print("| %s | %s | %s | %s | %s | %s | %.1f |" % (name, " / ".join(map(text, alone)), text(best.get("each type its own pipelines")),
      text(best.get("pipelines across types")), text(plan["best"]["step_s"]), gap, used.ru_utime + used.ru_stime))
P
}
echo '| cluster | each type alone, s | its own pipelines, s | across, s | the best, s | bound | CPU s |'
echo '|---|---|---|---|---|---|---|'
cluster() { printf 'heterogeneous:gpus-a=%s,gpus-b=%s,type-a=%s,type-b=%s' "$@"; }
row 'llama3-8b, 8 H100 + 8 A100' --model llama3-8b --gpus 16 --gbs 64 --seq 4096 --topology "$(cluster 8 8 H100 A100)"
row 'llama3-8b, 8 H100 + 24 A100' --model llama3-8b --gpus 32 --gbs 128 --seq 4096 --topology "$(cluster 8 24 H100 A100)"
row 'llama3-8b, 32 H100 + 32 A100' --model llama3-8b --gpus 64 --gbs 256 --seq 4096 --topology "$(cluster 32 32 H100 A100)"
row 'llama3-70b, 64 H100 + 64 A100' --model llama3-70b --gpus 128 --gbs 256 --seq 4096 --topology "$(cluster 64 64 H100 A100)"
row 'llama3-70b, 512 H100 + 512 A100' --model llama3-70b --gpus 1024 --gbs 1024 --seq 4096 --topology "$(cluster 512 512 H100 A100)"
