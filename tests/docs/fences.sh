#!/usr/bin/env bash
# Prints the sh fences of a Markdown file; or runs the n-th: fences.sh <file> [run <n>]
set -euo pipefail
fence() {
  awk -v wanted="$2" '
    /^```sh$/ { inside = 1; ++number; next }
    /^```$/ { inside = 0 }
    inside && (wanted == "" || number == wanted)' "$1"
}
if (($# == 3)); then
  command=$(fence "$1" "$3")
  [[ -n $command ]] || { echo "$1 has no sh fence $3" >&2; exit 1; }
  exec bash -euo pipefail -c "$command"
fi
fence "$1" ""
