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

# Where Parquet cannot be written (libraries that are none) no older table stays beside the new one.
mkdir "$scratch/broken"
module=$(dirname "$lockstep")/liblockstep-parquet.so
[[ ! -f $module ]] || (cd "$scratch/broken" && touch $(ldd "$module" | grep -oE '^[[:space:]]*lib(arrow|parquet)[^ ]*'))
cp -r "$scratch/one" "$scratch/no-parquet"
printf 'stale' >"$scratch/no-parquet/table.parquet"
LD_LIBRARY_PATH=$scratch/broken sweep -o "$scratch/no-parquet" >"$scratch/no-parquet.txt" 2>"$scratch/err"
[[ ! -e $scratch/no-parquet/table.parquet ]] || fail "a table of an earlier run stays: $(cat "$scratch/no-parquet.txt")"
grep -q 'table.parquet is removed' "$scratch/err" || fail "$(cat "$scratch/err")"
cmp "$scratch/one/table.csv" "$scratch/no-parquet/table.csv"

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
[[ -n "${LOCKSTEP_SANITIZED:-}" ]] || # which has no limits of memory
  grep -q '^1,.*,out-of-memory,2,needs more than 64 MiB of memory' "$scratch/limits/table.csv" || fail "$(cat "$scratch/limits/table.csv")"
grep -q '^1,.*,timed-out,137,not done within 2 s' "$scratch/time/table.csv" || fail "$(cat "$scratch/time/table.csv")"
# So are those whose packets need it, which are another process's.
if [[ -x $(dirname "$lockstep")/lockstep-packet && -z "${LOCKSTEP_SANITIZED:-}" ]]; then
  cat >"$scratch/packets.yaml" <<'YAML'
command: collective
flags: {op: alltoall, algorithm: direct, topology: "Spectrum-X:g=64", engine: packet, threads: 1}
axes: [{size: [64KiB, 64MiB]}]
limits: {memory: 40MiB}
outputs: [schema]
YAML
  "$lockstep" sweep "$scratch/packets.yaml" -o "$scratch/packets" >/dev/null
  grep -q '^0,64KiB,.*,done,0,' "$scratch/packets/table.csv" || fail "$(cat "$scratch/packets/table.csv")"
  grep -q '^1,64MiB,.*,out-of-memory,2,needs more than 40 MiB of memory' "$scratch/packets/table.csv" || fail "$(cat "$scratch/packets/table.csv")"
fi

# While it runs its tables can be read at any time: whole, and with more and more rows.
cat >"$scratch/long.yaml" <<'YAML'
command: collective
flags: {op: alltoall, algorithm: direct, engine: flow, threads: 1, no-symmetry: true, size: 64MiB, topology: "Spectrum-X:g=256"}
axes: [{seed: {seeds: 2000}}]
outputs: [schema]
YAML
"$lockstep" sweep "$scratch/long.yaml" -o "$scratch/long" >/dev/null 2>&1 &
running=$!
whole() { # <folder>: the rows of its table, as it is now
  cp "$1/table.csv" "$scratch/now.csv"
  [[ $(head -n 1 "$scratch/now.csv") == point,seed,*,schema && $(tail -c 1 "$scratch/now.csv" | od -An -c) == *'\n'* ]] || fail "half a table"
  awk -F, 'NR == 1 { columns = NF } NF != columns { exit 1 }' "$scratch/now.csv" || fail "half a row"
  [[ ! -f $1/table.parquet || $(head -c 4 "$1/table.parquet")$(tail -c 4 "$1/table.parquet") == PAR1PAR1 ]] || fail "half of a Parquet file"
  echo $(($(wc -l <"$scratch/now.csv") - 1))
}
until [[ -f $scratch/long/table.csv ]]; do
  kill -0 $running 2>/dev/null || fail "it has ended"
  sleep 0.05
done
first=$(whole "$scratch/long")
until now=$(whole "$scratch/long") && ((now > first)); do
  kill -0 $running 2>/dev/null || fail "it has ended"
  sleep 0.05
done
{ kill -9 $running && wait $running; } 2>/dev/null || true
((first >= 1 && $(whole "$scratch/long") >= now)) || fail "a table was lost"

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

# Which rows still hold: not by how the file is written, nor by its limits; by the files that are
# named, and those in folders that are.
mkdir "$scratch/logs"
cp tests/data/logs/two-tables.txt "$scratch/logs/"
cat >"$scratch/logs.yaml" <<YAML
command: compare score
axes: [{preset: [dgx-h100, $scratch/mine.json]}]
flags: {arguments: [$scratch/logs]}
YAML
score() { "$lockstep" sweep "$scratch/logs.yaml" -o "$scratch/score" "$@"; }
score | grep -q '2 of 2 points, 2 of them computed now: 1 bad-input 1 done' || fail "$(score)"
sed -i 's/^flags/# a comment\nlimits: {time: 10min}\nflags/' "$scratch/logs.yaml"
score --retry | grep -q '2 of 2 points, 1 of them computed now: 1 bad-input 1 done' || fail "a comment and a limit make another grid"
"$lockstep" compare calibrate tests/data/logs/two-tables.txt --preset dgx-h100 -o "$scratch/mine.json" >/dev/null
score | grep -q '2 of 2 points, 1 of them computed now: 2 done' || fail "a file that was missing is there now"
printf '\n' >>"$scratch/logs/two-tables.txt"
score 2>"$scratch/err" && fail "rows of other logs are taken"
grep -q "with another '$scratch/logs'" "$scratch/err" || fail "$(cat "$scratch/err")"

# What is no journal is not lost, and a pipe is not waited for.
mkdir "$scratch/no-journal" "$scratch/pipe"
printf 'not a journal' >"$scratch/no-journal/journal.jsonl"
mkfifo "$scratch/pipe/journal.jsonl"
sweep -o "$scratch/no-journal" 2>"$scratch/err" && fail "one line that is no journal is taken for one"
grep -q 'is no journal' "$scratch/err" || fail "$(cat "$scratch/err")"
[[ $(cat "$scratch/no-journal/journal.jsonl") == 'not a journal' ]] || fail "a file that is no journal is lost"
timeout 20 "$lockstep" sweep "$scratch/grid.yaml" -o "$scratch/pipe" 2>"$scratch/err" && fail "a pipe is no journal"
grep -q 'no plain file' "$scratch/err" || fail "$(cat "$scratch/err")"

# A sweep that runs keeps its journal.
cp "$scratch/one/journal.jsonl" "$scratch/before.jsonl"
flock "$scratch/one/journal.jsonl" "$lockstep" sweep "$scratch/grid.yaml" -o "$scratch/one" --restart 2>"$scratch/err" && fail "a running sweep's rows were thrown away"
grep -q 'another sweep writes here' "$scratch/err" || fail "$(cat "$scratch/err")"
cmp "$scratch/one/journal.jsonl" "$scratch/before.jsonl"

# Each point's files are its own; keys and flags that are not are told.
cat >"$scratch/files.yaml" <<'YAML'
command: simulate
axes: [{send-latency: [1us, 5us]}]
flags: {workload: tests/data/simulate/tiny.txt, topology: "Spectrum-X:g=8", trace: t.json}
outputs: [total_s, totals_s]
YAML
"$lockstep" sweep "$scratch/files.yaml" -o "$scratch/files" 2>"$scratch/err" && fail "points' files clobber each other"
grep -q 'keep-files keeps it' "$scratch/err" || fail "$(cat "$scratch/err")"
"$lockstep" sweep "$scratch/files.yaml" -o "$scratch/files" --keep-files --json >"$scratch/files.json" 2>"$scratch/err"
cmp -s "$scratch"/files/points/{0,1}/t.json && fail "both points have the same timeline"
# A kept file that is gone is computed again, with its point alone; so are those that were not kept.
cp "$scratch/files/points/1/t.json" "$scratch/t.json"
rm "$scratch/files/points/1/t.json"
"$lockstep" sweep "$scratch/files.yaml" -o "$scratch/files" --keep-files >"$scratch/out" 2>"$scratch/err2"
grep -q '2 of 2 points, 1 of them computed now: 2 done' "$scratch/out" || fail "a kept file is gone: $(cat "$scratch/out")"
grep -q 'files of 1 points are not there' "$scratch/err2" || fail "$(cat "$scratch/err2")"
cmp "$scratch/files/points/1/t.json" "$scratch/t.json"
"$lockstep" sweep "$scratch/files.yaml" -o "$scratch/files" --keep-files 2>/dev/null | grep -q ' 0 of them computed now' || fail "kept files are computed again"
grep -q "point [01], which is done, has no 'totals_s'" "$scratch/err" || fail "$(cat "$scratch/err")"
grep -q '"missing_outputs"' "$scratch/files.json" || fail "the document does not tell of totals_s"
grep -qF -- "-o $scratch/files" "$scratch/files.json" || fail "the command has no folder"
sed -i 's/tiny.txt/absent.txt/' "$scratch/files.yaml"
"$lockstep" sweep "$scratch/files.yaml" -o "$scratch/none" --keep-files 2>"$scratch/err" && fail "no point is done, and all is well"
grep -q 'no point is done; point 0: .*absent.txt' "$scratch/err" || fail "$(cat "$scratch/err")"

# A launcher of another MPI. What Open MPI takes in MPI_Init it does not give back, and it locks its connections in either order (one thread):
# from here on sanitizers count no leaks and no orders of locks.
export LSAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=detect_deadlocks=0
if [[ -f $(dirname "$lockstep")/liblockstep-mpi.so ]]; then
  for rank in 0 1; do
    code=0
    PMI_RANK=$rank PMI_SIZE=2 timeout 60 "$lockstep" sweep "$scratch/grid.yaml" -o "$scratch/pmi" 2>"$scratch/err" || code=$?
    [[ $code == 2 ]] || fail "another MPI's rank $rank ends with $code"
    grep -q 'the launcher belongs to another MPI' "$scratch/err" || fail "$(cat "$scratch/err")"
  done
fi

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

# A second machine, told by a remote shell that starts its ranks here, with a folder for temporary files of its own: the
# same bytes.
cat >"$scratch/agent" <<SH
#!/bin/sh
shift
mkdir -p "$scratch/tmp-other"
TMPDIR=$scratch/tmp-other exec sh -c "\$*"
SH
chmod +x "$scratch/agent"
printf 'localhost slots=1\nother-machine slots=1\n' >"$scratch/hosts"
machines() { "$mpiexec" --mca plm_rsh_agent "$scratch/agent" --hostfile "$scratch/hosts" "$@"; }
if [[ $("$mpiexec" --version 2>&1) == *@(OpenRTE|Open\ MPI)* ]] && machines -n 2 true 2>/dev/null; then
  # Not by shared memory: Open MPI takes them for two machines.
  OMPI_MCA_btl=self,tcp machines -n 2 "$lockstep" sweep "$scratch/grid.yaml" -o "$scratch/machines" >"$scratch/machines.txt" || fail "$(cat "$scratch/machines.txt")"
  cmp "$scratch/one/table.csv" "$scratch/machines/table.csv"
fi

# A rank that does not see the files that rank 0 sees, or sees others, would give other rows: that is an error, which names
# them. (Folders of two ranks stand for machines that share no file system.)
mkdir "$scratch/here" "$scratch/there"
"$lockstep" topology build --template Spectrum-X -g 8 -o "$scratch/here/fabric.json" >/dev/null 2>&1
cat >"$scratch/fabric.yaml" <<'YAML'
command: collective
flags: {op: allreduce, topology: fabric.json, engine: analytic, threads: 1}
axes: [{size: {from: 1MiB, to: 40MiB, steps: 40}}]
outputs: [schema]
YAML
apart() {
  "$mpiexec" -n 1 --wdir "$scratch/here" "$lockstep" sweep "$scratch/fabric.yaml" -o "$scratch/apart" "$@" \
    : -n 1 --wdir "$scratch/there" "$lockstep" sweep "$scratch/fabric.yaml" -o "$scratch/apart" "$@"
}
code=0
apart >/dev/null 2>"$scratch/err" || code=$?
[[ $code == 2 ]] || fail "a rank without the fabric's file: exit code $code"
grep -q "rank 1 on '.*' sees other files than rank 0: 'fabric.json' is not there" "$scratch/err" || fail "$(cat "$scratch/err")"
"$lockstep" topology build --template Spectrum-X -g 16 -o "$scratch/there/fabric.json" >/dev/null 2>&1
apart --restart >/dev/null 2>"$scratch/err" && fail "a rank has another fabric, and all is well"
grep -q "'fabric.json' has other bytes there" "$scratch/err" || fail "$(cat "$scratch/err")"
cp "$scratch/here/fabric.json" "$scratch/there/"
apart --restart | grep -q '40 of 40 points, 40 of them computed now: 40 done' || fail "copies of a file are the same file"
# What comes late over a network is waited for.
rm "$scratch/there/fabric.json"
(sleep 2 && cp "$scratch/here/fabric.json" "$scratch/there/late.json" && mv "$scratch/there/late.json" "$scratch/there/fabric.json") &
apart --restart >"$scratch/late.txt" 2>&1 || fail "a file that comes late: $(cat "$scratch/late.txt")"
wait $!

# A grid's error is one message of ours, and the other ranks leave MPI as they should.
code=0
"$mpiexec" -n 2 "$lockstep" sweep tests/fuzz/corpus/grid/quote.yaml -o "$scratch/bad" 2>"$scratch/err" || code=$?
[[ $code == 2 && $(grep -c '^lockstep: ' "$scratch/err") == 1 ]] || fail "$(cat "$scratch/err")"
grep -qE 'improper|MPI_Init|finalize|ORTE_ERROR' "$scratch/err" && fail "$(cat "$scratch/err")"

# Kill each rank, at any moments (of the start, too) and when some rows are there. What is lost are the points in flight:
# those whose folder was begun and that have no row, one of rank 0 and two of another (it may begin the next one while the
# row of the last is on its way).
ranks_of() { # the pids of the ranks that mpirun <pid> started, by rank
  for child in $(pgrep -P "$1" -f "lockstep sweep" || true); do
    printf '%s %s\n' "$(tr '\0' '\n' <"/proc/$child/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')" "$child"
  done | sort -n | cut -d' ' -f2
}
folder=$scratch/killed-ranks
sed 's/^flags: {/flags: {csv: layers, /' "$scratch/grid.yaml" >"$scratch/kept.yaml"
kept() { "$@" sweep "$scratch/kept.yaml" --keep-files -o "$folder"; }
points_with_rows() { { cat "$folder/journal.jsonl" 2>/dev/null || true; } | sed -n 's/^{"point":\([0-9]*\),.*"sum":"[0-9a-f]*"}$/\1/p' | sort -u; }
begun_without_rows() { { ls "$folder/points" 2>/dev/null || true; } | sort | comm -23 - <(points_with_rows); }
: >"$scratch/lost-before"
for moment in 0:at0.05 1:at0.1 1:at0.2 0:at0.3 0:25 1:40; do # the rank, and seconds from the start or the number of rows
  victim=${moment%%:*} goal=${moment#*:}
  kept "$mpiexec" -n 2 "$lockstep" >/dev/null 2>&1 &
  mpirun=$!
  mapfile -t pids < <(until pgrep -P $mpirun -f "lockstep sweep" | wc -l | grep '^2$' >/dev/null || ! kill -0 $mpirun 2>/dev/null; do sleep 0.01; done; ranks_of $mpirun)
  case $goal in
    at*) sleep "${goal#at}" && kill -9 ${pids[$victim]:-} 2>/dev/null || true ;;
    *) kill_after "$folder" "$goal" ${pids[$victim]:-$mpirun} ;;
  esac
  wait $mpirun 2>/dev/null || true
  [[ $goal == at* ]] || (($(points_with_rows | wc -l) >= goal)) || fail "rows were lost"
  begun_without_rows >"$scratch/lost"
  (($(comm -13 "$scratch/lost-before" "$scratch/lost" | wc -l) <= 3)) || fail "more than the points in flight were lost: $(cat "$scratch/lost")"
  mv "$scratch/lost" "$scratch/lost-before"
done
had=$(points_with_rows | wc -l)
kept "$mpiexec" -n 2 "$lockstep" >"$scratch/resumed.txt"
now=$(sed -n 's/.* points, \([0-9]*\) of them.*/\1/p' "$scratch/resumed.txt")
((had + now == points)) || fail "had $had rows, then computed $now of $points"
"$lockstep" sweep "$scratch/kept.yaml" --keep-files -o "$scratch/kept" >/dev/null
cmp "$scratch/kept/table.csv" "$folder/table.csv"
