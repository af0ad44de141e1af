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
"$lockstep" cache verify | grep '0 damaged and removed; the store: ok' >/dev/null
"${simulate[@]}" | cmp - a.txt

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
