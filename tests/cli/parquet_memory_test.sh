#!/usr/bin/env bash
# Whatever memory there is: Parquet is written and read, or a message says why not and the exit code
# is 2 or, where Arrow itself cannot be loaded, 3. No signal ends the program, at its end neither.
# Usage: parquet_memory_test.sh <lockstep>
set -euo pipefail
lockstep=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
simulate=(simulate --model llama3-8b --num-layers 2 --gpus 8 --topology Spectrum-X:g=8 -q --trace)
"$lockstep" "${simulate[@]}" "$scratch/t.parquet" >/dev/null

# within KIB COMMAND…
within() {
  local limit=$1 code=0
  shift
  (ulimit -v "$limit" && exec "$lockstep" "$@") >/dev/null 2>"$scratch/err" || code=$?
  if [[ $code -ne 0 ]] && { [[ $code -ne 2 && $code -ne 3 ]] || ! grep -q "^lockstep: " "$scratch/err"; }; then
    printf 'FAILED: %s KiB for %s: exit code %s, %s\n' "$limit" "$*" "$code" "$(<"$scratch/err")"
    failures=1
  fi
}
for limit in $(seq 64000 4000 132000); do
  within "$limit" "${simulate[@]}" "$scratch/u.parquet"
  within "$limit" whatif --trace "$scratch/t.parquet" --meta "$scratch/t.yaml" -o "$scratch/whatif" -q
  within "$limit" sweep tests/data/sweep/engines.yaml -q -o "$scratch/sweep-$limit"
done
# Too little to map Arrow's libraries: the reason is told, not that there are none.
code=0
(ulimit -v 48000 && exec "$lockstep" "${simulate[@]}" "$scratch/u.parquet") >/dev/null 2>"$scratch/err" || code=$?
if [[ $code -ne 3 ]] || ! grep -q "Arrow, which is missing: .*\.so" "$scratch/err"; then
  printf 'FAILED: exit code %s, %s\n' "$code" "$(<"$scratch/err")"
  failures=1
fi
exit $failures
