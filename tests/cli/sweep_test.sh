#!/usr/bin/env bash
# A sweep gives the same bytes on one process and on several ranks; one that was killed at any time
# goes on, and loses at most the points in flight; points that fail are rows.
# Usage: sweep_test.sh <lockstep> [<mpiexec>]
set -euo pipefail
lockstep=$(realpath "$1")
mpiexec=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# 60 points, five of which cannot work (a tp that does not divide the GPUs).
cat >"$scratch/grid.yaml" <<'YAML'
command: simulate
flags: {workload: tests/data/simulate/tiny.txt, topology: "Spectrum-X:g=64", gpus: 64}
axes:
  - channels: [1, 2, 4]
  - send-latency: {from: 1us, to: 5us, steps: 5}
  - algorithm: [ring, tree, no-such-algorithm, double-binary-tree]
outputs: [total_s, engine]
YAML
points=60

sweep() { "$lockstep" sweep "$scratch/grid.yaml" "$@"; }
sweep -o "$scratch/one" >"$scratch/one.txt"
grep -q "^$points of $points points, $points of them computed now:" "$scratch/one.txt" || fail "$(cat "$scratch/one.txt")"
[[ $(wc -l <"$scratch/one/table.csv") == $((points + 1)) ]] || fail "the table has not a row a point"
grep -q 'bad-input,2,.*no-such-algorithm' "$scratch/one/table.csv" || fail "a failed point has no reason"

# Nothing is left to do: nothing is computed, and the tables are the same.
cp "$scratch/one/table.csv" "$scratch/before.csv"
sweep -o "$scratch/one" | grep "^$points of $points points, 0 of them computed now" >/dev/null || fail "computed again"
cmp "$scratch/one/table.csv" "$scratch/before.csv"

# Another grid in the same folder is refused.
sed 's/from: 1us/from: 2us/' "$scratch/grid.yaml" >"$scratch/other.yaml"
"$lockstep" sweep "$scratch/other.yaml" -o "$scratch/one" 2>"$scratch/err" && fail "another grid's rows are taken"
grep -q 'rows of another grid' "$scratch/err"

# Points that need too much memory or time are rows, and the others are not lost.
cat >"$scratch/limits.yaml" <<'YAML'
command: collective
flags: {op: alltoall, algorithm: direct, size: 1GiB, engine: flow, threads: 1}
axes: [{topology: ["Spectrum-X:g=8", "Spectrum-X:g=1024"]}]
limits: {memory: 64MiB}
outputs: [schema]
YAML
sed 's/memory: 64MiB/time: 2s/; s/g=1024/g=2048/' "$scratch/limits.yaml" >"$scratch/time.yaml"
"$lockstep" sweep "$scratch/limits.yaml" -o "$scratch/limits" >/dev/null
"$lockstep" sweep "$scratch/time.yaml" -o "$scratch/time" >/dev/null
grep -q '^0,.*,done,0,' "$scratch/limits/table.csv" || fail "$(cat "$scratch/limits/table.csv")"
grep -q '^1,.*,out-of-memory,2,needs more than 64 MiB of memory' "$scratch/limits/table.csv" || fail "$(cat "$scratch/limits/table.csv")"
grep -q '^1,.*,timed-out,137,not done within 2 s' "$scratch/time/table.csv" || fail "$(cat "$scratch/time/table.csv")"

# Killed: what is in the journal is not computed again.
rows() { { cat "$1/journal.jsonl" 2>/dev/null || true; } | grep -c '"point"' || true; }
kill_after() { # <folder> <rows> <pid to kill> : when the journal has so many rows
  until (($(rows "$1") >= $2)); do
    kill -0 "$3" 2>/dev/null || return 0
    sleep 0.01
  done
  kill -9 "$3" 2>/dev/null || true
}
for at in 1 20 41; do
  "$lockstep" sweep "$scratch/grid.yaml" -o "$scratch/killed" >/dev/null 2>&1 &
  kill_after "$scratch/killed" "$at" $!
  wait $! 2>/dev/null || true
done
had=$(rows "$scratch/killed")
sweep -o "$scratch/killed" >"$scratch/resumed.txt"
now=$(sed -n 's/.* points, \([0-9]*\) of them.*/\1/p' "$scratch/resumed.txt")
((had >= 41 && had + now == points)) || fail "had $had rows, then computed $now of $points"
cmp "$scratch/one/table.csv" "$scratch/killed/table.csv"
[[ ! -f $scratch/one/table.parquet ]] || cmp "$scratch/one/table.parquet" "$scratch/killed/table.parquet"

[[ -n $mpiexec ]] || exit 0
ranks() { "$mpiexec" -n "$1" "$lockstep" sweep "$scratch/grid.yaml" -o "$2"; }
for n in 2 3; do
  ranks $n "$scratch/ranks$n" >"$scratch/ranks.txt" || fail "$(cat "$scratch/ranks.txt")"
  cmp "$scratch/one/table.csv" "$scratch/ranks$n/table.csv"
  [[ ! -f $scratch/one/table.parquet ]] || cmp "$scratch/one/table.parquet" "$scratch/ranks$n/table.parquet"
  for ((rank = 0; rank < n; ++rank)); do
    grep -q "\"rank\":$rank," "$scratch/ranks$n/journal.jsonl" || fail "rank $rank of $n did nothing"
  done
done

# Kill each rank once; at most two points a rank are in flight.
ranks_of() { # the pids of the ranks that mpirun <pid> started, by rank
  for child in $(pgrep -P "$1" -f "lockstep sweep" || true); do
    printf '%s %s\n' "$(tr '\0' '\n' <"/proc/$child/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')" "$child"
  done | sort -n | cut -d' ' -f2
}
folder=$scratch/killed-ranks
for victim in 0 1; do
  goal=$((15 + 20 * victim))
  "$mpiexec" -n 2 "$lockstep" sweep "$scratch/grid.yaml" -o "$folder" >/dev/null 2>&1 &
  mpirun=$!
  mapfile -t pids < <(until pgrep -P $mpirun -f "lockstep sweep" | wc -l | grep '^2$' >/dev/null; do sleep 0.01; done; ranks_of $mpirun)
  kill_after "$folder" $goal "${pids[$victim]}"
  wait $mpirun 2>/dev/null || true
  (($(rows "$folder") >= goal)) || fail "rows were lost"
done
had=$(rows "$folder")
ranks 2 "$folder" >"$scratch/resumed.txt"
now=$(sed -n 's/.* points, \([0-9]*\) of them.*/\1/p' "$scratch/resumed.txt")
((had + now == points)) || fail "had $had rows, then computed $now of $points"
cmp "$scratch/one/table.csv" "$folder/table.csv"
