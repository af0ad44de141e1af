#!/usr/bin/env bash
# Aceso's --top K: the best plan of each number of stages with each microbatch, best first; each costs
# what --price says of it, and those of microbatch 1 are what a search for it alone finds.
# Usage: plan_top_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
problem=(plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer
  --gpus-per-node 2 --nodes 2 --memory-limit 4000)
for top in 3 100; do
  "$lockstep" "${problem[@]}" --global-batch 16 --micro-batch 1 2 --top $top --json -o "$scratch/$top" \
    >"$scratch/$top.json" 2>/dev/null
done
"$lockstep" "${problem[@]}" --global-batch 16 --micro-batch 1 --top 100 --json >"$scratch/one.json" 2>/dev/null
for plan in "$scratch"/100/*.json; do
  "$lockstep" "${problem[@]}" --price "$plan" --json >"$scratch/price-$(basename "$plan")" 2>/dev/null
done
python3 - "$scratch" <<'P'
import glob, json, sys
scratch = sys.argv[1]
def plans(name):
    return [(p["time_s"], len(p["stages"]), p["micro_batch"]) for p in json.load(open(f"{scratch}/{name}.json"))["plans"]]
everything, three = plans(100), plans(3)
assert len(everything) == 6, everything
assert everything == sorted(everything), "not the best first"
assert three == everything[:3], (three, everything)
kinds = [plan[1:] for plan in everything]
assert len(set(kinds)) == len(kinds), f"two plans of one kind: {kinds}"
alone, those = plans("one"), [plan for plan in everything if plan[2] == 1]
assert alone == those, (alone, those)
priced = sorted(json.load(open(file))["time_s"] for file in glob.glob(f"{scratch}/price-*"))
assert priced == [plan[0] for plan in everything], (priced, everything)
P
