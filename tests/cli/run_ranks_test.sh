#!/usr/bin/env bash
# The ranks of `lockstep run --local-ranks`: they end when the process that started them does, one that is killed is named, and
# what limits inputs holds for them. Usage: run_ranks_test.sh <lockstep>
set -euo pipefail
lockstep=$(realpath "$1")
cd "$(dirname "$0")/../data/run"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'FAILED: %s\n' "$1" && cat "$scratch"/* && exit 1; }

# Two ranks that compute for a minute, started by $run; $ranks are their processes.
start() {
  "$lockstep" run --workload minute.csv --transport control --local-ranks 2 --master "127.0.0.1:$1" 2>"$scratch/err" >"$scratch/out" &
  run=$!
  for _ in $(seq 100); do
    mapfile -t ranks < <(ps -o pid= --ppid $run | tr -d ' ')
    [[ ${#ranks[@]} == 2 ]] && break
    sleep 0.05
  done
  [[ ${#ranks[@]} == 2 ]] || fail 'there are no two ranks'
  sleep 0.5
}
gone() {
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}

port=29436
for signal in TERM KILL; do
  start $((port++))
  kill -$signal $run
  wait $run 2>/dev/null || true
  for rank in "${ranks[@]}"; do
    gone "$rank" || fail "a rank goes on after SIG$signal"
  done
done

start 29438
kill -KILL "${ranks[1]}"
code=0
wait $run || code=$?
[[ $code == 1 ]] || fail "exit code $code, not 1"
grep -q 'rank [01] was ended by signal 9 (Killed)' "$scratch/err" || fail 'no word of the signal'

LOCKSTEP_MAX_INPUT=10 "$lockstep" run --workload four-gpus.txt --transport control --local-ranks 4 --max-input 1MiB --master 127.0.0.1:29439 \
  >"$scratch/out" 2>"$scratch/err" || fail 'the ranks have another limit'

# A rank that fails before all have met (its folder is a file) is told to the others, which would wait for a minute.
others=(run --workload four-gpus.txt --transport control --world 4 --master 127.0.0.1:29440 --timeout 60)
SECONDS=0
for rank in 0 2 3; do
  "$lockstep" "${others[@]}" --rank $rank 2>"$scratch/err$rank" >"$scratch/out$rank" &
done
code=0
"$lockstep" "${others[@]}" --rank 1 -o one-gpu.txt 2>"$scratch/err1" >"$scratch/out1" || code=$?
[[ $code == 2 ]] || fail "the rank that fails: exit code $code, not 2"
for job in $(jobs -p); do
  code=0
  wait "$job" || code=$?
  [[ $code == 1 ]] || fail "a rank that was told: exit code $code, not 1"
done
((SECONDS < 20)) || fail "the ranks took $SECONDS s to end"
for rank in 0 2 3; do
  grep -q '^lockstep: rank 1 failed: one-gpu.txt/byteps/1: cannot make the folder' "$scratch/err$rank" || fail "rank $rank does not say why"
done

# Nobody can be told where another program has the port: the process that started the ranks stops them.
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 29441))
time.sleep(60)' &
taken=$!
sleep 1
SECONDS=0 code=0
"$lockstep" run --workload four-gpus.txt --transport control --local-ranks 4 --timeout 60 --master 127.0.0.1:29441 >"$scratch/out" 2>"$scratch/err" || code=$?
kill $taken
[[ $code == 2 ]] || fail "exit code $code, not 2"
((SECONDS < 20)) || fail "the ranks took $SECONDS s to end"
grep -q 'cannot listen: ' "$scratch/err" || fail 'no word of the port'
