#!/usr/bin/env bash
# Ctrl-C prints the scores of the steps that are predicted by then, and says how many they are.
# Usage: score_steps_stop_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'FAILED: %s\n' "$1" && tail -n 20 "$scratch"/out "$scratch"/err && exit 1; }

# 200 steps of a second or so.
table=megatron_seqsel_table5.csv
mkdir "$scratch/steps"
sed -n 2p "tests/data/step_score/$table" >"$scratch/steps/$table"
for _ in $(seq 200); do echo 'megatron-1T,full,0,512,8,64,1,1,512,1,90'; done >>"$scratch/steps/$table"
for seconds in 2 8 32; do
  code=0
  timeout --preserve-status -s INT "$seconds" env --default-signal=INT "$lockstep" score-steps "$scratch/steps" >"$scratch/out" 2>"$scratch/err" || code=$?
  [[ ! -s $scratch/out ]] || break  # a slow machine has no step done by then
done
[[ $code == 130 ]] || fail "exit code $code, not 130"
steps=$(sed -n 's/^lockstep: stopped: the first \([0-9]*\) of 200 steps$/\1/p' "$scratch/err")
[[ -n $steps ]] || fail 'no word of how many'
grep -q "^Korthikanti table 5  *$steps " "$scratch/out" || fail "no scores of $steps steps"
