#!/usr/bin/env bash
# Searches of `lockstep plan --model`: CPU seconds, the winner and how far it is proven; and the winner's price by a
# simulation of its own, which must be the same.
# Usage: planner_job.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

row() {  # name, flags…
  local name=$1
  shift
  TIMEFORMAT='%U %S'
  { time "$lockstep" plan "$@" --threads 1 --json -o "$scratch/plan" >"$scratch/out" 2>/dev/null; } 2>"$scratch/time"
  LOCKSTEP=$lockstep sh "$scratch/plan/job.sh" --json >"$scratch/again" 2>/dev/null
  python3 - "$name" "$scratch" <<'P'
import json, sys
name, scratch = sys.argv[1:]
plan = json.load(open(scratch + "/out"))
again = json.load(open(scratch + "/again"))
cpu = sum(map(float, open(scratch + "/time").read().split()))
best = plan["best"]
proof = "proven" if plan["proven"] else "gap %.2f %%" % (100 * plan["gap"])
same = "the same" if again["total_s"] == best["step_s"] else "%.4f s" % again["total_s"]
print("| %s | %.1f | %d | %d | %d | %s | %.4f | %s | %s |" % (name, cpu, plan["cuts"], plan["plans_seen"], plan["replays"],
      best["plan"], best["step_s"], proof, same))
P
}
echo '| case | CPU s | cuts | plans | replays | best | step s | proof | simulated again |'
echo '|---|---|---|---|---|---|---|---|---|'
row 'Llama 3 8B, 64 H100' --model llama3-8b --gpus 64 --gbs 128 --seq 8192 --topology Spectrum-X:g=64
row 'Mixtral 8x7B, 64 H100' --model mixtral-8x7b --gpus 64 --gbs 128 --seq 4096 --topology Spectrum-X:g=64
row 'Llama 3 70B, 512 H100' --model llama3-70b --gpus 512 --gbs 512 --seq 8192 --topology Spectrum-X:g=512
