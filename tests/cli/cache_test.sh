#!/usr/bin/env bash
# A command with a cache answers the second time with the same text and files, without computing;
# a changed input, flag or folder computes again; so does a damaged entry.
# Usage: cache_test.sh <lockstep>
set -euo pipefail
lockstep=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LOCKSTEP_CACHE=$scratch/cache
data=$PWD/tests/data
cd "$scratch"
cp "$data"/whatif/two-stages.* "$data/simulate/tiny.txt" .
fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}
results() { "$lockstep" cache ls --json | grep -c '"id"' || true; }

# What-if: the documents come back, byte for byte, from the cache alone.
whatif=("$lockstep" whatif --trace two-stages.csv --meta two-stages.yaml -o out)
sleep 0.1 # the inputs' times lie before the run
"${whatif[@]}" >first.txt
cp -r out before
[[ $(results) == 1 ]] || fail "one result should be kept, there are $(results)"
rm -r out
"${whatif[@]}" >second.txt
cmp first.txt second.txt
diff -r out before
[[ $(results) == 1 ]] || fail "the second run should have been a hit"

# A hit takes what is there for granted only if it is the same.
printf 'spoilt' >out/"$(ls out | sed -n 1p)"
"${whatif[@]}" >/dev/null
diff -r out before

# A changed input.
sed -i '2s/1/2/' two-stages.yaml || true
printf '\n' >>two-stages.csv
sleep 0.1
"${whatif[@]}" >/dev/null
[[ $(results) == 2 ]] || fail "a changed trace should be computed anew"

# Another flag; errors are not kept; standard input is not.
simulate=("$lockstep" simulate --workload tiny.txt --topology Spectrum-X:g=8)
"${simulate[@]}" >a.txt
"${simulate[@]}" --json >b.txt
[[ $(results) == 4 ]] || fail "two command lines should be two results"
"$lockstep" simulate --workload absent.txt --topology Spectrum-X:g=8 2>err.txt && fail "no error"
grep -q 'absent.txt: cannot read' err.txt || fail "the error is not told"
[[ $(results) == 4 ]] || fail "an error was kept"

# What is read once, a pipe, is not taken for what another run read.
step_of() { cat "$1" | "$lockstep" simulate --workload /dev/stdin --topology Spectrum-X:g=8 | grep '^step time'; }
sed 's/100000/900000/g' tiny.txt >other.txt
[[ $(step_of tiny.txt) != "$(step_of other.txt)" ]] || fail "the result of another input was given"
[[ $(results) == 4 ]] || fail "what was read from a pipe was kept"

# A name of a template may become a file's; relative names are those of the working directory.
topology_of() { "$lockstep" topology describe Spectrum-X:g=8; }
topology_of >template.txt
topology_of | cmp - template.txt
[[ $(results) == 5 ]] || fail "the second look should be a hit"
"$lockstep" topology build --template Spectrum-X -g 16 -o 'Spectrum-X:g=8' 2>/dev/null
sleep 0.1
topology_of | cmp -s - template.txt && fail "the template's answer was given for a file of its name"
mkdir elsewhere
(cd elsewhere && topology_of) | cmp - template.txt
rm 'Spectrum-X:g=8'
topology_of | cmp - template.txt

# So may a file be there that a generator looks for by its name.
printf '{"num_layers": 2, "dense_layer": 1, "hidden_size": 16, "num_attention_heads": 2, "d_q": 4, "d_kv": 4, "d_r": 2, "shared_experts": 1, "expert_dim": 4, "moe_router_topk": 2}' >model.json
times=results/aiob_outputs/DeepSeek-671B-world_size2-tp2-pp1-ep1-bpg4-seq7-decode.txt
vidur() { "$lockstep" generate --generator vidur DeepSeek model.json --phase decode --micro_batch 4 --seq_length 7 --world_size 2 --tp 2 -o - 2>/dev/null; }
sleep 0.1
vidur >no-times.txt
kept=$(results)
vidur | cmp - no-times.txt
[[ $(results) == "$kept" ]] || fail "the second workload should be a hit"
mkdir -p results/aiob_outputs
printf 'atten_qkv:\n time_gpu_avg: 1.5\nmlp_up:\n time_gpu_avg: 3\nmoe_down:\n time_gpu_avg: 5\n' >"$times"
sleep 0.1
vidur | cmp -s - no-times.txt && fail "measured times were not looked for again"

# A cache that cannot be used is a warning; looking at one makes none.
printf 'a file' >no-folder
LOCKSTEP_CACHE=$scratch/no-folder/cache "$lockstep" topology describe Spectrum-X:g=8 2>err.txt | cmp - template.txt
grep -q 'warning: LOCKSTEP_CACHE: .*computed without' err.txt || fail "$(cat err.txt)"
"$lockstep" cache ls --dir "$scratch/nowhere" 2>err.txt && fail "no cache was listed"
grep -q 'there is no cache' err.txt || fail "$(cat err.txt)"
[[ ! -e $scratch/nowhere ]] || fail "looking at a cache made one"

# Programs and modules beside ours are inputs too.
if [[ -x $(dirname "$lockstep")/lockstep-packet ]]; then
  mkdir installed
  cp "$lockstep" installed/
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$(dirname "$lockstep")/lockstep-packet" >installed/lockstep-packet
  chmod +x installed/lockstep-packet
  packets=(installed/lockstep simulate --workload tiny.txt --topology Spectrum-X:g=8 --engine=packet)
  sleep 0.1
  "${packets[@]}" >/dev/null
  printf '# another\n' >>installed/lockstep-packet
  sleep 0.1
  before=$(results)
  "${packets[@]}" >/dev/null
  [[ $(results) == $((before + 1)) ]] || fail "another packet program, the same results"
fi
"$lockstep" cache gc --size 0 >/dev/null
"${simulate[@]}" >/dev/null
"${simulate[@]}" --json >/dev/null

# Damage: found, removed, computed again.
python3 - cache/results.sqlite <<'PY'
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute("UPDATE results SET head = zeroblob(10) WHERE command LIKE 'simulate%'")
store.commit()
PY
"${simulate[@]}" | cmp - a.txt
"$lockstep" cache verify >verify.txt && fail "verify should tell of the damage"
grep -q '1 damaged' verify.txt || fail "$(cat verify.txt)"
"$lockstep" cache verify | grep '0 damaged and removed; the store: ok' >/dev/null
printf 'not a database at all, but long enough to be looked at' >cache/results.sqlite
rm -f cache/results.sqlite-*
"${simulate[@]}" | cmp - a.txt
[[ -f cache/results.sqlite.damaged ]] || fail "the broken store should stand aside"
rm cache/results.sqlite.damaged
python3 - cache/results.sqlite <<'PY'
import os, sys
size = os.path.getsize(sys.argv[1])
with open(sys.argv[1], "r+b") as store:  # its first page says that it is one
    store.seek(4096)
    store.write(b"\xff" * (size - 4096))
PY
"$lockstep" cache verify >verify.txt && fail "verify should tell of the broken store"
grep -q 'moved aside' verify.txt || fail "$(cat verify.txt)"
[[ -f cache/results.sqlite.damaged ]] || fail "verify should move the broken store aside"
for looks in verify ls gc; do  # of a store that cannot even be opened
  head -c 5000 /dev/urandom >cache/results.sqlite
  "$lockstep" cache $looks >looks.txt 2>&1 && fail "cache $looks should tell of the broken store"
  grep -q 'moved aside' looks.txt || fail "$(cat looks.txt)"
done
"$lockstep" cache verify | grep '0 damaged and removed; the store: ok' >/dev/null
"${simulate[@]}" | cmp - a.txt

# The environment that results depend on: the steps of a BytePS trace.
byteps() { "$lockstep" simulate --workload tiny.txt --topology Spectrum-X:g=8 --steps 3 --byteps-trace byteps >/dev/null; }
byteps
cp -r byteps every-step
BYTEPS_TRACE_START_STEP=2 BYTEPS_TRACE_END_STEP=2 byteps
diff -r byteps every-step >/dev/null && fail "the trace of other steps was given"
byteps
diff -r byteps every-step

# gc, and a bound.
"$lockstep" cache gc --size 0 | grep ' 0 stay' >/dev/null
[[ $(results) == 0 ]] || fail "gc left something"
LOCKSTEP_CACHE_SIZE=10kB "${simulate[@]}" --json >/dev/null
LOCKSTEP_CACHE_SIZE=lots "${simulate[@]}" 2>err.txt && fail "a size that is none is taken"
grep -q LOCKSTEP_CACHE_SIZE err.txt

# Eight at once.
"$lockstep" cache gc --size 0 >/dev/null
pids=()
for i in 1 2 3 4 5 6 7 8; do
  "$lockstep" collective --op allreduce --size ${i}MiB --topology Spectrum-X:g=8 --json >"c$i.txt" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
[[ $(results) == 8 ]] || fail "eight writers left $(results) results"
"$lockstep" cache verify >/dev/null
