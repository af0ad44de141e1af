#!/usr/bin/env bash
# Without lockstep-packet the packet engine says so, with exit code 3; lockstep-packet refuses what is
# no request.
# Usage: packet_missing_test.sh <lockstep>
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$1" "$scratch/lockstep"
PATH=/nowhere "$scratch/lockstep" simulate --engine packet --workload tests/data/simulate/tiny.txt \
  --topology Spectrum-X:g=8 2>"$scratch/err"
code=$?
if ((code != 3)) || [[ $(<"$scratch/err") != *"needs lockstep-packet"*"--engine flow"* ]]; then
  printf 'exit code %s, expected 3; stderr: %s\n' "$code" "$(<"$scratch/err")"
  exit 1
fi
if [[ -x $1-packet ]]; then
  printf 'what is this?' | "$1-packet" --serve >"$scratch/out"
  code=$?
  if ((code != 2)) || ! grep -q "no request that makes sense" "$scratch/out"; then
    printf 'lockstep-packet --serve: exit code %s, expected 2\n' "$code"
    exit 1
  fi
  "$1-packet" --serve </dev/null || exit 1
fi
