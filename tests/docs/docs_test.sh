#!/usr/bin/env bash
# Every command in the documentation works: each sh fence of README.md and docs/ is run from the
# root of the sources, with this build's lockstep on PATH and a fresh folder as $OUT.
# Not run here are README's two commands, set-up and tests, which .ci/run runs; and fences of any
# other kind (console, text, cpp …), which show rather than tell.
# Usage: docs_test.sh <folder of lockstep>
set -euo pipefail
export PATH=$1:$PATH
OUT=$(mktemp -d)
export OUT
trap 'rm -rf "$OUT"' EXIT
failures=0
fail() {
  printf 'FAILED: %s\n' "$@"
  failures=$((failures + 1))
}

before=$(ls -A)
count=0
no_charts=$(lockstep --version | grep "ECharts .*not built in" || true)
while read -r file; do
  [[ $file != docs/report.md || -z $no_charts ]] || continue
  fences=$(grep -c '^```sh$' "$file" || true)
  for ((n = 1; n <= fences; ++n)); do
    first=$(awk -v wanted="$n" '/^```sh$/ { ++number; getline; if (number == wanted) print $1 }' "$file")
    [[ $first != ./setup && $first != ctest ]] || continue
    count=$((count + 1))
    tests/docs/fences.sh "$file" run "$n" >"$OUT.log" 2>&1 ||
      fail "$file, sh fence $n ends with $?:" "$(tail -n 5 "$OUT.log")"
    rm -f "$OUT.log"
  done
done < <(find README.md docs -name '*.md' | sort)
[[ $(ls -A) == "$before" ]] || fail "a command left a file in the sources; write to \$OUT"
((count > 0)) || fail "no sh fence found"

# README's two commands are the ones .ci/run runs.
for n in 1 2; do
  grep -q "fences.sh README.md run $n\$" .ci/run || fail ".ci/run does not run README's command $n"
done
[[ $(grep -c '^\./setup ' <(tests/docs/fences.sh README.md)) == 1 ]] || fail "README: one ./setup is expected"
[[ $(grep -c '^ctest ' <(tests/docs/fences.sh README.md)) == 1 ]] || fail "README: one ctest is expected"

printf '%s sh fences run\n' "$count"
exit $((failures > 0))
