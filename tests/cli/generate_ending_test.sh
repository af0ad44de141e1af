#!/usr/bin/env bash
# Of AICB's flavour a name that ends in .json gets JSON, if --format does not say otherwise.
# Usage: generate_ending_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
complain() {
  printf 'FAILED: %s\n' "$1"
  failed=1
}
generate=(generate --generator simai-training --num_layers 1 --quiet)
"$lockstep" "${generate[@]}" -o "$out/named.json"
"$lockstep" "${generate[@]}" --format json -o "$out/asked.txt"
"$lockstep" "${generate[@]}" --format simai -o "$out/simai.json"
"$lockstep" "${generate[@]}" -o "$out/named.txt"
cmp -s "$out/named.json" "$out/asked.txt" || complain "x.json is not what --format json writes"
cmp -s "$out/simai.json" "$out/named.txt" || complain "--format simai into x.json is not SimAI's text"
"$lockstep" simulate --workload "$out/named.json" --topology Spectrum-X:g=32 --engine analytic --quiet >/dev/null || complain "x.json is not read again"
"$lockstep" generate --generator megatron --num_layers 1 --format csv -o "$out/csv.json" --quiet
head -n 1 "$out/csv.json" | grep -q '^comm_type,' || complain "--format csv into x.json is no CSV"
exit "$failed"
