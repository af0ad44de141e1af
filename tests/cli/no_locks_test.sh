#!/usr/bin/env bash
# On a file system that has no locks a command computes without the cache, at once and with a warning; what has to be
# the only one to write says that it cannot know.
# Usage: no_locks_test.sh <lockstep> <no_locks>
set -euo pipefail
lockstep=$(realpath "$1") library=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}
without_locks() { LD_PRELOAD=$library LOCKSTEP_CACHE=$scratch/cache timeout 60 "$lockstep" "$@" 2>"$scratch/err"; }
collective=(collective --op allreduce --size 1MiB --topology Spectrum-X:g=8)
"$lockstep" "${collective[@]}" >"$scratch/expected.txt"
without_locks "${collective[@]}" >"$scratch/out.txt" || fail "a command needs locks: $(cat "$scratch/err")"
cmp "$scratch/expected.txt" "$scratch/out.txt"
grep -q 'cannot open the cache: its file system has no locks; computed without' "$scratch/err" || fail "$(cat "$scratch/err")"

code=0
without_locks cache ls --dir "$scratch/cache" || code=$?
[[ $code == 2 ]] || fail "cache ls ends with $code"
grep -q 'results.sqlite: cannot open the cache: its file system has no locks' "$scratch/err" || fail "$(cat "$scratch/err")"

code=0
without_locks sweep tests/data/sweep/engines.yaml -o "$scratch/sweep" || code=$?
[[ $code == 2 ]] || fail "sweep ends with $code"
grep -q 'journal.jsonl: cannot lock the journal: No locks available' "$scratch/err" || fail "$(cat "$scratch/err")"
