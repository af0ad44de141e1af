#!/usr/bin/env bash
# `lockstep whatif --follow` is killed again and again while files land; in the end its journal has
# every step once, and is the one that a run without kills writes.
# Usage: whatif_follow_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$out"' EXIT
meta=tests/data/whatif/two-stages.yaml
mkdir "$out/traces"
follow=("$lockstep" whatif --follow "$out/traces" --meta "$meta" --alert-slowdown 1.04)
steps() { grep -o '"event":"step","step":[0-9]*' "$1/follow-two-stages.jsonl" | grep -o '[0-9]*$'; }
trace_of_step() { sed "2,\$s/^\([^,]*,[^,]*,[^,]*\),1,/\1,$1,/" tests/data/whatif/two-stages.csv; }

# Killed at twelve moments of what one run over one trace takes, however slow the machine or the build.
mkdir "$out/killed"
trace_of_step 1 >"$out/traces/1.csv"
began=$(date +%s%N)
"${follow[@]}" -o "$out/first" --once >/dev/null 2>&1
took=$((($(date +%s%N) - began) / 1000))
for step in $(seq 1 12); do
  trace_of_step "$step" >"$out/traces/.new"
  mv "$out/traces/.new" "$out/traces/$step.csv"
  "${follow[@]}" -o "$out/killed" --poll 10 --settle 0 >/dev/null 2>&1 &
  sleep "$((took * (step * 7 % 12) / 8))e-6"
  kill -9 $!
  wait $! 2>/dev/null || true
done
# What killed ones left of their documents goes when the next one begins; other files stay.
sleep 0 &
dead=$!
wait "$dead"
touch "$out/killed/causes-two-stages.json.$dead.tmp" "$out/killed/heatmap-exact-two-stages.png.$dead-1.tmp"
touch "$out/killed/mine.$dead.tmp"
# A file that grows is read when it is whole, and one that is none is told once.
{ trace_of_step 13 | head -n 20; sleep 0.3; trace_of_step 13 | tail -n +21; } >"$out/traces/13.csv" &
writer=$!
echo "no trace" >"$out/traces/wrong.csv"
"${follow[@]}" -o "$out/killed" --poll 20 --settle 1000 --json >"$out/events" 2>"$out/messages" &
follower=$!
wait "$writer"
for _ in $(seq 200); do
  grep -q '"step":13,' "$out/killed/follow-two-stages.jsonl" && break
  sleep 0.05
done
kill -TERM "$follower"
wait "$follower" || { echo "FAILED: exit code $? after SIGTERM"; exit 1; }

[[ $(find "$out/killed" -name '*.tmp' -printf '%f ') == "mine.$dead.tmp " ]] ||
  { echo "FAILED: left over:" $(find "$out/killed" -name '*.tmp'); exit 1; }
[[ $(steps "$out/killed" | sort -n | tr '\n' ' ') == "$(seq 1 13 | tr '\n' ' ')" ]] ||
  { echo "FAILED: steps lost or repeated:" $(steps "$out/killed"); exit 1; }
[[ $(grep -c '"event":"alert"' "$out/killed/follow-two-stages.jsonl") == 1 ]] || { echo "FAILED: alerts"; exit 1; }
[[ $(grep -c 'passed over' "$out/messages") -le 1 ]] || { echo "FAILED: told twice"; exit 1; }
[[ $(grep -c '"event":"refused","file":"wrong.csv"' "$out/killed/follow-two-stages.jsonl") == 1 ]] ||
  { echo "FAILED: wrong.csv"; exit 1; }
"${follow[@]}" -o "$out/whole" --once >"$out/text" 2>/dev/null
diff <(grep -v '"event":"refused"' "$out/killed/follow-two-stages.jsonl") \
     <(grep -v '"event":"refused"' "$out/whole/follow-two-stages.jsonl")
grep -q '^ALERT: step 3: S = 1.050 over 3 steps' "$out/text"
# A journal goes on with its own meta file, written otherwise or not, and with no other.
sed 's/$/ # said again/' "$meta" >"$out/same.yaml"
"${follow[@]/#"$meta"/$out/same.yaml}" -o "$out/whole" --once >/dev/null 2>&1 || { echo "FAILED: a comment makes another meta file"; exit 1; }
sed 's/^run_id:.*/run_id: 7/' "$meta" >"$out/other.yaml"
code=0
"${follow[@]/#"$meta"/$out/other.yaml}" -o "$out/whole" --once >/dev/null 2>"$out/messages" || code=$?
[[ $code == 2 ]] && grep -q 'follow-two-stages.jsonl: --meta: the journal is of a meta file that says something else' "$out/messages" ||
  { echo "FAILED: exit code $code: $(cat "$out/messages")"; exit 1; }
# A file of that name which is none stays as it is, also where it is one line without its end.
mkdir "$out/taken"
printf 'dear' >"$out/taken/follow-two-stages.jsonl"
code=0
"${follow[@]}" -o "$out/taken" --once >/dev/null 2>"$out/messages" || code=$?
[[ $code == 2 && $(cat "$out/taken/follow-two-stages.jsonl") == dear ]] && grep -q 'this is no journal' "$out/messages" ||
  { echo "FAILED: exit code $code: $(cat "$out/messages")"; exit 1; }
cmp "$out/killed/heatmap-exact-two-stages.svg" "$out/whole/heatmap-exact-two-stages.svg"
