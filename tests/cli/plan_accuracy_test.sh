#!/usr/bin/env bash
# Predicted against actual: the actual time is the mean iteration that `lockstep run --json` printed; another document, and a row
# with neither time nor run, are errors that name it.
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$lockstep" run --workload tests/data/run/one-gpu.txt --transport control --master 127.0.0.1:29433 --iterations 3 --json \
  >"$scratch/run.json"
cp tests/data/plan/scale-layer/two-stages.json "$scratch"
plan=("$lockstep" plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2
  --nodes 2 --memory-limit 4000)
printf 'plan,time_ms,run,memory_mb\ntwo-stages.json,,run.json,800\n' >"$scratch/measured.csv"
"${plan[@]}" --actual "$scratch/measured.csv" -o "$scratch/out" --json >"$scratch/accuracy.json" 2>/dev/null
python3 - "$scratch" <<'P'
import json, sys
scratch = sys.argv[1]
mean = json.load(open(scratch + "/run.json"))["iterations"]["mean_s"]
plan, = json.load(open(scratch + "/accuracy.json"))["plans"]
assert abs(plan["actual_s"] / mean - 1) < 1e-12, (plan, mean)
assert abs(plan["predicted_s"] / plan["actual_s"] - 1 - plan["time_error"]) < 1e-9, plan
assert plan["actual_bytes"] == 800 * 2**20, plan
P
test -s "$scratch/out/accuracy.csv" && test -s "$scratch/out/accuracy-time.svg"

refused() {  # what the message must have
  if "${plan[@]}" --actual "$scratch/measured.csv" >/dev/null 2>"$scratch/err"; then
    echo "accepted: $1"
    exit 1
  fi
  grep -qF -- "$1" "$scratch/err" || { cat "$scratch/err"; exit 1; }
}
echo '{"schema": "lockstep-simulate/1", "total_s": 1}' >"$scratch/run.json"
refused "what 'lockstep run --json' prints"
echo '{"schema": "lockstep-run-summary/1", "rows": []}' >"$scratch/run.json"
refused 'the run has no whole iteration'
printf 'plan,time_ms,run\ntwo-stages.json,,\n' >"$scratch/measured.csv"
refused 'row 1 of the measurements has no time_ms'
