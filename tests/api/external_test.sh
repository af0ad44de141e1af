#!/usr/bin/env bash
# An external project finds the installed package, by CMake and by pkg-config, builds and predicts
# what the program itself predicts; so does the Python package, where it was built.
# Usage: external_test.sh <build folder> <lockstep>
set -euo pipefail
build=$1 lockstep=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
workload=$PWD/tests/data/simulate/tiny.txt
"$lockstep" simulate --workload "$workload" --topology Spectrum-X:g=8 --json >"$scratch/expected.json"

cmake --install "$build" --prefix "$scratch/install" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
mv "$scratch/install" "$scratch/moved" # packages can be moved
cmake -S examples/embedding -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/moved" >"$scratch/log" 2>&1 &&
  cmake --build "$scratch/build" >>"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
for program in predict predict_c; do
  "$scratch/build/$program" "$workload" >"$scratch/out.json" 2>"$scratch/err"
  cmp "$scratch/expected.json" "$scratch/out.json"
done
"$scratch/build/predict" "$workload" 2>&1 >/dev/null | grep '^2 lockstep: absent.txt: cannot read the file' >/dev/null

export PKG_CONFIG_PATH=$scratch/moved/lib/pkgconfig:$(echo "$scratch"/moved/lib/*/pkgconfig)
prefix=$(pkg-config --variable=prefix lockstep)
[[ $(realpath "$prefix") == $(realpath "$scratch/moved") ]] || { echo "FAILED: the prefix is $prefix"; exit 1; }
read -ra flags < <(pkg-config --cflags --libs lockstep)
cc examples/embedding/predict.c -o "$scratch/predict_pc" "${flags[@]}"
"$scratch/predict_pc" "$workload" 2>/dev/null | cmp "$scratch/expected.json" -

if [[ -d $scratch/moved/lib/lockstep/python ]]; then
  PYTHONPATH=$scratch/moved/lib/lockstep/python python3 - "$workload" >"$scratch/python.txt" <<'PY'
import json, sys, lockstep
print(lockstep._core.program())
print(json.dumps(lockstep.simulate(workload=sys.argv[1], topology="Spectrum-X:g=8")["total_s"]))
PY
  grep -q "^$scratch/moved/bin/lockstep$" "$scratch/python.txt" || { cat "$scratch/python.txt"; exit 1; }
  grep -q "\"total_s\": $(sed -n 2p "$scratch/python.txt")" "$scratch/expected.json"
fi
