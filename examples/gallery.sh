#!/usr/bin/env bash
# Runs every example and compares what it prints with docs/gallery.md; digits may differ, since better
# models move them. Every example leaves a figure.
# Usage: gallery.sh <folder of lockstep> [--update]     (--update writes the gallery and its pictures)
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$(realpath "$1"):$PATH
export PATH
OUT=$(mktemp -d)
export OUT
trap 'rm -rf "$OUT"' EXIT
failed=0

# Without digits and bars, and with one blank for several: what a change of a model leaves.
bare() { sed -E 's/[0-9]+([.,][0-9]+)?(e[-+][0-9]+)?/0/g; s/#+//g; s/[ -]+/ /g; s/ $//'; }
printed() { awk -v name="$1" '$0 == "## " name { here = 1 } /^## / && $0 != "## " name { here = 0 } here' docs/gallery.md |
  awk '/^```$/ && inside { exit } inside; /^```text$/ { inside = 1 }'; }

gallery='# Gallery

Ten questions and how to ask them. Each is a script of [examples/](../examples), which the tests run; the figures are made
by `--figure`. `examples/gallery.sh build --update` makes this page.
'
count=0
for script in examples/[0-9]*.sh; do
  name=$(basename "$script" .sh)
  count=$((count + 1))
  if ! output=$(bash "$script" 2>"$OUT/errors"); then
    printf 'FAILED: %s:\n' "$script"
    cat "$OUT/errors"
    failed=1
    continue
  fi
  [[ ! -s $OUT/errors ]] || { echo "FAILED: $script complains: $(cat "$OUT/errors")"; failed=1; }
  [[ -n $output ]] || { echo "FAILED: $script prints nothing"; failed=1; }
  head -c 4 "$OUT/$name.svg" | grep '<svg' >/dev/null || { echo "FAILED: $script leaves no figure"; failed=1; }
  question=$(sed -n '2,/^set /p' "$script" | sed -n 's/^# //p')
  gallery+=$'\n'"## $name"$'\n\n'"$question"$'\n\n```text\n'"$output"$'\n```\n\n'"![$name](pictures/gallery/$name.svg)"$'\n'
  if [[ ${2-} != --update ]] && ! diff <(printed "$name" | bare) <(bare <<<"$output"); then
    echo "FAILED: $script prints something else than docs/gallery.md"
    failed=1
  fi
done
((count == 10)) || { echo "FAILED: $count examples"; failed=1; }
if [[ ${2-} == --update && $failed == 0 ]]; then
  mkdir -p docs/pictures/gallery
  cp "$OUT"/[0-9]*.svg docs/pictures/gallery/
  printf '%s' "$gallery" >docs/gallery.md
fi
exit "$failed"
