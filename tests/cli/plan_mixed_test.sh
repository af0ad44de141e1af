#!/usr/bin/env bash
# Plans whose pipelines differ, as files: job.sh takes the time that was found; megatron.sh says the
# plan where it can, and else that it cannot.
# Usage: plan_mixed_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'FAILED: %s\n' "$1" && exit 1; }
cluster='heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,gpus-per-server-b=4'
problem=(--model llama3-8b --num_layers 6 --gpus 8 --gbs 96 --seq 2048 --topology "$cluster" --mbs 1 --recompute none)
number() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$2)" "$1"; }

"$lockstep" plan "${problem[@]}" --zero 1 --tp 1 --pp 1 --json -o "$scratch/plan" >"$scratch/out.json"
cmp "$scratch/out.json" "$scratch/plan/plan.json" || fail 'plan.json is not what was printed'
LOCKSTEP=$lockstep sh "$scratch/plan/job.sh" --json >"$scratch/job.json" 2>/dev/null
python3 - "$scratch/job.json" "$scratch/out.json" <<'P' || fail 'job.sh takes another time'
import json, sys
took, found = (json.load(open(file)) for file in sys.argv[1:])
assert abs(took["total_s"] - found["best"]["step_s"]) < 5e-13, (took["total_s"], found["best"]["step_s"])
P
python3 - "$scratch/out.json" <<'P' || fail 'the plan does not add up'
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["schema"] == "lockstep-mixed-plan/1" and plan["proven"]
best = plan["best"]
ranks = set()
batch = 0
for kind in best["kinds"]:
    assert sum(stage["layers"] for stage in kind["stages"]) == 6
    assert len(kind["first_ranks"]) == kind["pipelines"]
    batch += kind["pipelines"] * kind["copies"] * kind["microbatches"] * best["micro_batch"]
    for pipeline in kind["first_ranks"]:
        for first, stage in zip(pipeline, kind["stages"]):
            assert stage["gpu_type"] == ("H100" if first < 4 else "A100"), (first, stage)
            ranks.update(range(first, first + best["tp"] * best["cp"] * kind["copies"]))
assert batch == 96 and len(ranks) == best["gpus"]
assert plan["bound"] <= best["step_s"]
assert {family["family"] for family in plan["families"]} == {"H100 alone", "A100 alone", "each type its own pipelines"}
for one in plan["plans"]:
    assert one["bound_s"] <= one["step_s"] and one["memory_share"] <= 1
P
[[ $(number "$scratch/out.json" '["best"]["kinds"].__len__()') -gt 1 ]] || fail 'all pipelines are alike'
grep -q 'no flags for pipelines that are not alike' "$scratch/plan/megatron.sh" || fail 'megatron.sh does not refuse'
if bash "$scratch/plan/megatron.sh" 2>/dev/null; then fail 'megatron.sh starts something'; fi
grep -q 'no pipelines that are not alike' "$scratch/plan/deepspeed.json" || fail 'deepspeed.json does not say so'

# One pipeline over both types: Megatron-LM can say it.
"$lockstep" plan "${problem[@]}" --zero 1 --no-vpp --tp 4 --pp 2 --no-sp --json -o "$scratch/across" >"$scratch/across.json"
[[ $(number "$scratch/across.json" '["best"]["family"]') == 'pipelines across types' ]] || fail 'not across types'
grep -Eq "pipeline-model-parallel-layout 'Et(\\*[0-9])?\\|t(\\*[0-9])?L'" "$scratch/across/megatron.sh" || fail "$(<"$scratch/across/megatron.sh")"
grep -q '^# Servers in this order of node ranks: [01], [01]\.$' "$scratch/across/megatron.sh" || fail 'no order of servers'
bash -n "$scratch/across/megatron.sh"

# What was pinned is in the plan, with chunks, context parallelism and shards of each pipeline by itself; job.sh takes the same time.
"$lockstep" plan "${problem[@]}" --zero 3 --tp 1 --cp 2 --pp 2 --vpp 2 --json -o "$scratch/pinned" >"$scratch/pinned.json" 2>/dev/null ||
  fail 'pins are refused'
LOCKSTEP=$lockstep sh "$scratch/pinned/job.sh" --json >"$scratch/job.json" 2>/dev/null
python3 - "$scratch/job.json" "$scratch/pinned.json" <<'P' || fail 'pins do not hold'
import json, sys
took, found = (json.load(open(file)) for file in sys.argv[1:])
best = found["best"]
assert (best["cp"], best["zero"]) == (2, 3), best["plan"]
for kind in best["kinds"]:
    assert [len(stage["chunk_layers"]) for stage in kind["stages"]] == [2, 2], kind
    assert sum(stage["layers"] for stage in kind["stages"]) == 6
assert abs(took["total_s"] - best["step_s"]) < 5e-13, (took["total_s"], best["step_s"])
P
"$lockstep" plan "${problem[@]}" --zero 1 --tp 1 --no-vpp --no-cp --json >"$scratch/forbidden.json" 2>/dev/null
python3 - "$scratch/forbidden.json" <<'P' || fail 'what is forbidden is in a plan'
import json, sys
for plan in json.load(open(sys.argv[1]))["plans"]:
    assert plan["cp"] == 1 and all(len(s["chunk_layers"]) == 1 for k in plan["kinds"] for s in k["stages"]), plan["plan"]
P

# A model with experts: they are cut over the ranks of a stage.
"$lockstep" plan --model mixtral-8x7b --num_layers 4 --gpus 8 --gbs 16 --seq 1024 --topology "$cluster" --mbs 1 --recompute none \
  --tp 1 --ep 4 --zero 1 --no-vpp --json -o "$scratch/experts" >"$scratch/experts.json" 2>/dev/null || fail 'no plan with experts'
[[ $(number "$scratch/experts.json" '["best"]["ep"]') == 4 ]] || fail 'other experts'
LOCKSTEP=$lockstep sh "$scratch/experts/job.sh" --json >"$scratch/job.json" 2>/dev/null
python3 - "$scratch/job.json" "$scratch/experts.json" <<'P' || fail 'job.sh takes another time with experts'
import json, sys
took, found = (json.load(open(file)) for file in sys.argv[1:])
assert abs(took["total_s"] - found["best"]["step_s"]) < 5e-13
P
