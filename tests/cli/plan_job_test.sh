#!/usr/bin/env bash
# A plan of ours as files: each of them says the same job, to the picosecond; and a search that is
# resumed, or runs on other threads, finds the same.
# Usage: plan_job_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'FAILED: %s\n' "$1" && exit 1; }
problem=(--model llama3-8b --num_layers 6 --gpus 8 --gbs 16 --seq 2048 --topology Spectrum-X:g=8 --mbs 1,2 --effort 8000000)

"$lockstep" plan "${problem[@]}" --json -o "$scratch/plan" --resume "$scratch/prices" --threads 1 >"$scratch/first.json"
for file in megatron.sh deepspeed.json job.sh plan.json; do
  [[ -s $scratch/plan/$file ]] || fail "there is no $file"
done
cmp "$scratch/first.json" "$scratch/plan/plan.json" || fail 'plan.json is not what was printed'

total() { python3 -c 'import json, sys; print(round(1e12 * json.load(open(sys.argv[1]))["total_s"]))' "$1"; }
best() { python3 -c 'import json, sys; print(round(1e12 * json.load(open(sys.argv[1]))["best"]["step_s"]))' "$1"; }
LOCKSTEP=$lockstep sh "$scratch/plan/job.sh" --json >"$scratch/job.json" 2>/dev/null
[[ $(total "$scratch/job.json") == "$(best "$scratch/first.json")" ]] || fail 'job.sh takes another time'
"$lockstep" simulate --from-megatron-args "$scratch/plan/megatron.sh" --topology Spectrum-X:g=8 --json \
  >"$scratch/megatron.json" 2>"$scratch/megatron.err" || fail "$(<"$scratch/megatron.err")"
[[ $(total "$scratch/megatron.json") == "$(best "$scratch/first.json")" ]] || fail 'megatron.sh is another job'
python3 - "$scratch/plan/deepspeed.json" <<'P' || fail 'deepspeed.json does not add up'
import json, sys
c = json.load(open(sys.argv[1]))
ranks, rest = divmod(c["train_batch_size"], c["train_micro_batch_size_per_gpu"] * c["gradient_accumulation_steps"])
assert rest == 0 and 8 % ranks == 0 and 0 <= c["zero_optimization"]["stage"] <= 3
P

lines=$(wc -l <"$scratch/prices")
"$lockstep" plan "${problem[@]}" --json --resume "$scratch/prices" >"$scratch/again.json"
cmp "$scratch/first.json" "$scratch/again.json" || fail 'a resumed search finds another plan'
[[ $(wc -l <"$scratch/prices") -ge $lines ]] || fail 'the journal lost lines'
"$lockstep" plan "${problem[@]}" --json --threads 3 >"$scratch/threads.json"
cmp "$scratch/first.json" "$scratch/threads.json" || fail 'three threads find another plan'
if "$lockstep" plan "${problem[@]/#2048/1024}" --resume "$scratch/prices" >/dev/null 2>"$scratch/err"; then
  fail 'prices of another problem are taken'
fi
grep -q 'another problem' "$scratch/err" || fail "$(<"$scratch/err")"

# The best plan, given: it costs what the search found, and so does the same written by hand.
price() { python3 -c 'import json, sys; print(round(1e12 * json.load(open(sys.argv[1]))["time_s"]))' "$1"; }
given=(plan --model llama3-8b --num_layers 6 --gpus 8 --gbs 16 --seq 2048 --topology Spectrum-X:g=8 --json)
"$lockstep" "${given[@]}" --price "$scratch/plan/plan.json" --report "$scratch/price.html" >"$scratch/price.json"
[[ $(price "$scratch/price.json") == "$(best "$scratch/first.json")" ]] || fail 'a given plan has another price'
[[ -s $scratch/price.html ]] || fail 'a price has no report'
python3 - "$scratch/first.json" "$scratch/entry.json" <<'P'
import json, sys
json.dump(json.load(open(sys.argv[1]))["plans"][-1], open(sys.argv[2], "w"))
P
"$lockstep" "${given[@]}" --price "$scratch/entry.json" >"$scratch/price.json"
python3 - "$scratch/entry.json" "$scratch/price.json" <<'P' || fail 'an entry of the plans has another price'
import json, sys
entry, price = (json.load(open(f)) for f in sys.argv[1:])
assert abs(price["time_s"] - entry["step_s"]) < 1e-12 and price["memory_bytes"] == entry["memory_bytes"] and price["fits"]
P
echo '{"tp": 2, "pp": 2, "mbs": 2, "zero": 1, "recompute": "full"}' >"$scratch/hand.json"
"$lockstep" "${given[@]}" --price "$scratch/hand.json" >"$scratch/price.json"
"$lockstep" simulate --model llama3-8b --num_layers 6 --gpus 8 --gbs 16 --seq 2048 --topology Spectrum-X:g=8 --tp 2 --pp 2 --mbs 2 --zero 1 \
  --recompute full --json >"$scratch/job.json" 2>/dev/null
[[ $(price "$scratch/price.json") == "$(total "$scratch/job.json")" ]] || fail 'a plan by hand has another price'
