#!/usr/bin/env bash
# Every command in the documentation works: each sh fence of README.md and docs/ is run from the
# root of the sources, with this build's lockstep on PATH and a fresh folder as $OUT. A command of ours in an
# indented block is not run: not_run.txt has it, with the reason.
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

# Of each indented command "FILE<tab>COMMAND" (lockstep itself, or $C where that is short for it).
indented() {
  find README.md docs -name '*.md' | sort | while read -r file; do
    awk -v file="$file" '
      /^```/ { fenced = !fenced }
      !fenced && /^    (lockstep |\$C |C="lockstep)/ { print file "\t" substr($0, 5) }' "$file"
  done
}
indented >"$OUT.indented"
grep -v '^#' tests/docs/not_run.txt >"$OUT.not_run"
while IFS=$'\t' read -r file command; do
  awk -F '\t' -v file="$file" -v command="$command" \
    '$1 == file && index(command, $2) == 1 && $3 != "" { found = 1 } END { exit !found }' "$OUT.not_run" ||
    fail "$file: '$command' is in no sh fence, which would be run, and not in tests/docs/not_run.txt"
done <"$OUT.indented"
while IFS=$'\t' read -r file command _; do
  awk -F '\t' -v file="$file" -v start="$command" \
    '$1 == file && index($2, start) == 1 { found = 1 } END { exit !found }' "$OUT.indented" ||
    fail "tests/docs/not_run.txt: $file has no indented '$command'"
done <"$OUT.not_run"
rm -f "$OUT.indented" "$OUT.not_run"

# README's two commands are the ones .ci/run runs.
for n in 1 2; do
  grep -q "fences.sh README.md run $n\$" .ci/run || fail ".ci/run does not run README's command $n"
done
[[ $(grep -c '^\./setup ' <(tests/docs/fences.sh README.md)) == 1 ]] || fail "README: one ./setup is expected"
[[ $(grep -c '^ctest ' <(tests/docs/fences.sh README.md)) == 1 ]] || fail "README: one ctest is expected"

printf '%s sh fences run\n' "$count"
exit $((failures > 0))
