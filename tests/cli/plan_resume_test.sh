#!/usr/bin/env bash
# A search that is killed at some moment, and goes on from its journal, ends as if nothing had been:
# Aceso's, Metis's, one over a model's plans, of which it gives some up as slower, and one over
# pipelines of different shape.
# Usage: plan_resume_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'FAILED: %s\n' "$1" && exit 1; }
data=tests/data/plan

# What a search prints but the CPU time it took.
result() { sed 's/"search_cpu_s": [^,]*,\?//' "$1"; }

entries() { if [[ $name == metis ]]; then grep -o '"part":.*' "$1"; else cat "$1"; fi | sort; }

# check NAME COMMAND…: the search whole, with a journal, killed at several lengths of it, resumed.
check() {
  local name=$1 whole journal lines pid size
  shift
  whole=$scratch/$name.json journal=$scratch/$name.journal
  "$lockstep" plan "$@" --json >"$whole" 2>/dev/null
  "$lockstep" plan "$@" --json --resume "$journal.whole" >"$scratch/out" 2>/dev/null
  cmp <(result "$whole") <(result "$scratch/out") || fail "$name: a journal changes the result"
  lines=$(wc -l <"$journal.whole")
  [[ $lines -gt 3 ]] || fail "$name: the journal has $lines lines"
  # Killed for good as soon as the journal has grown, thrice.
  size=0
  for _ in 1 2 3; do
    "$lockstep" plan "$@" --json --threads 1 --resume "$journal" >/dev/null 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && [[ $(stat -c %s "$journal" 2>/dev/null || echo 0) -le $size ]]; do :; done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    size=$(stat -c %s "$journal")
  done
  "$lockstep" plan "$@" --json --resume "$journal" >"$scratch/out" 2>/dev/null
  cmp <(result "$whole") <(result "$scratch/out") || fail "$name: resumed after kill -9 it ends otherwise"
  # Cut off anywhere, in the middle of a line too.
  for size in 1 $((lines / 2)) $((lines - 1)); do
    { head -n "$size" "$journal.whole" && sed -n "$((size + 1))p" "$journal.whole" | head -c 9; } >"$journal"
    "$lockstep" plan "$@" --json --resume "$journal" >"$scratch/out" 2>/dev/null
    cmp <(result "$whole") <(result "$scratch/out") || fail "$name: from $size lines it ends otherwise"
    # What a part of Metis's space has beyond the plans that are wanted hangs on what was known before.
    cmp <(entries "$journal") <(entries "$journal.whole") || fail "$name: from $size lines the journal is another"
  done
}

aceso=(--aceso-model scale-layer --aceso-size 4layers --profiles $data/scale-layer --gpus-per-node 2 --nodes 2
  --memory-limit 1200 --micro-batch 1 2)
metis=(--metis-hostfile $data/metis/hostfile --metis-clusterfile $data/metis/cluster.json --profiles $data/metis
  --gbs 8 --max-tp 2 --max-batch 2 --layers 4)
mixed=(--model llama3-8b --num_layers 6 --gpus 8 --gbs 16 --seq 2048 --mbs 1 --recompute none --zero 1
  --topology 'heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,gpus-per-server-b=4' --tp 2,4 --no-sp)
check aceso "${aceso[@]}" --global-batch 16
check metis "${metis[@]}" --top 5
check mixed "${mixed[@]}"
job=(--model llama3-8b --num_layers 4 --gpus 16 --gbs 32 --seq 2048 --mbs 1 --recompute none --topology Spectrum-X:g=16)
check job "${job[@]}"
grep -q '"beyond_s"' "$scratch/job.journal" || fail 'no replay was given up as slower than the best'

if "$lockstep" plan "${aceso[@]}" --global-batch 32 --resume "$scratch/aceso.journal" >/dev/null 2>"$scratch/err"; then
  fail 'the stages of another problem are taken'
fi
grep -q 'another problem' "$scratch/err" || fail "$(<"$scratch/err")"
if "$lockstep" plan "${metis[@]}" --resume "$scratch/aceso.journal" >/dev/null 2>"$scratch/err"; then
  fail "Aceso's journal is taken for Metis's problem"
fi
grep -q 'no journal of such a search' "$scratch/err" || fail "$(<"$scratch/err")"

printf 'one line without its end' >"$scratch/notes"
if "$lockstep" plan "${aceso[@]}" --global-batch 16 --resume "$scratch/notes" >/dev/null 2>"$scratch/err"; then
  fail 'a file that is no journal is taken for one'
fi
grep -q 'no journal of such a search' "$scratch/err" || fail "$(<"$scratch/err")"
[[ $(<"$scratch/notes") == 'one line without its end' ]] || fail 'a file that is no journal is lost'
