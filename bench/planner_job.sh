#!/usr/bin/env bash
# Searches of `lockstep plan --model`: wall and CPU seconds, the winner and how far it is proven; and the winner's price
# by a simulation of its own, which must be the same.
# Usage: planner_job.sh <lockstep> [threads] [first word of the rows wanted: 8B, Mixtral, 70B, 405B]
set -euo pipefail
lockstep=$1
threads=${2:-1}
wanted=${3:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

row() {  # name, flags…
  local name=$1
  shift
  [[ $name == *"$wanted"* ]] || return 0
  TIMEFORMAT='%R %U %S'
  { time "$lockstep" plan "$@" --threads "$threads" --json -o "$scratch/plan" >"$scratch/out" 2>/dev/null; } 2>"$scratch/time"
  LOCKSTEP=$lockstep sh "$scratch/plan/job.sh" --json >"$scratch/again" 2>/dev/null
  python3 - "$name" "$scratch" <<'P'
import json, sys
name, scratch = sys.argv[1:]
plan = json.load(open(scratch + "/out"))
again = json.load(open(scratch + "/again"))
wall, *cpu = map(float, open(scratch + "/time").read().split())
best = plan["best"]
proof = "proven" if plan["proven"] else "gap %.2f %%" % (100 * plan["gap"])
picoseconds = [round(1e12 * s) for s in (again["total_s"], best["step_s"])]
same = "the same" if picoseconds[0] == picoseconds[1] else "%.4f s" % again["total_s"]
print("| %s | %.1f | %.1f | %d | %d | %d + %d | %s | %s | %.4f | %s | %s |" % (name, wall, sum(cpu), plan["cuts"],
      plan["plans_seen"], plan["replays"], plan["too_large"], plan["routes"], best["plan"], best["step_s"], proof, same))
P
}
echo '| case | wall s | CPU s | cuts | plans | replays + too large | routes | best | step s | proof | simulated again |'
echo '|---|---|---|---|---|---|---|---|---|---|---|'
row 'Llama 3 8B, 64 H100' --model llama3-8b --gpus 64 --gbs 128 --seq 8192 --topology Spectrum-X:g=64
row 'Mixtral 8x7B, 64 H100' --model mixtral-8x7b --gpus 64 --gbs 128 --seq 4096 --topology Spectrum-X:g=64
row 'Llama 3 70B, 512 H100' --model llama3-70b --gpus 512 --gbs 512 --seq 8192 --topology Spectrum-X:g=512
row 'Llama 3 405B, 16,384 H100' --model llama3-405b --gpus 16384 --gbs 2048 --seq 8192 --topology Spectrum-X:g=16384,app=2048
