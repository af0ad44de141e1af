#!/usr/bin/env bash
# What a shell can do to the standard streams: close them, fill the disk behind them, stop reading.
# Usage: streams_test.sh <lockstep>
set -uo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect <what> <wanted exit code> <exit code> <wanted text on stderr>
expect() {
  local said
  said=$(<"$scratch/err")
  if [[ $2 != "$3" || $said != *"$4"* || ($4 == "" && $said != "") ]]; then
    printf 'FAILED: %s: exit code %s, expected %s; stderr: %s\n' "$1" "$3" "$2" "$said"
    failures=$((failures + 1))
  fi
}

"$lockstep" --help 2>"$scratch/err" >/dev/full
expect "full disk" 2 $? "No space left"

"$lockstep" --help 2>"$scratch/err" >&-
expect "closed stdout" 2 $? "standard output"

# With stdout closed, the next file opened must not become stdout.
"$lockstep" topology build --template Spectrum-X -g 8 -o "$scratch/t.txt" 2>"$scratch/err" >&-
expect "closed stdout, a file written" 0 $? "8 GPUs"
head -c 2 "$scratch/t.txt" | grep '^[0-9]' >/dev/null || {
  printf 'FAILED: closed stdout spoilt the file: %s\n' "$(head -c 80 "$scratch/t.txt")"
  failures=$((failures + 1))
}

# A reader that stops early ends us quietly, by SIGPIPE, whatever our parent did with that signal.
(
  trap '' PIPE
  "$lockstep" topology build --template fat-tree --ports 16 -o - 2>"$scratch/err" | head -n 1
  exit "${PIPESTATUS[0]}"
) >/dev/null
expect "a reader that stops" $((128 + 13)) $? ""

# Packed inputs are unpacked, whatever their names; of a damaged one it is said.
gzip -c tests/data/simulate/tiny.txt >"$scratch/tiny.txt"
"$lockstep" topology build --template Spectrum-X -g 8 -o - -q | gzip -c >"$scratch/t.gz"
simulate() { "$lockstep" simulate --workload "$1" --topology "$2" 2>"$scratch/err" | tail -n +3; }
[[ $(simulate "$scratch/tiny.txt" "$scratch/t.gz") == $(simulate tests/data/simulate/tiny.txt Spectrum-X:g=8) ]] || {
  printf 'FAILED: packed inputs: %s\n' "$(<"$scratch/err")"
  failures=$((failures + 1))
}
head -c 60 "$scratch/tiny.txt" >"$scratch/cut.gz"
"$lockstep" simulate --workload "$scratch/cut.gz" --topology Spectrum-X:g=8 2>"$scratch/err" >"$scratch/out"
expect "a packed input that is cut off" 2 $? "cut.gz"

exit $((failures > 0))
