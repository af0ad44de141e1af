#!/usr/bin/env bash
# clang-tidy over sources, with what stands in .clang-tidy: what it says is either mended or stands in
# clang_tidy.txt with the reason why it is not so. Five seconds of CPU a file.
#
# Usage: tests/source/clang_tidy.sh <build folder> [<file>…]      all but tests and benchmarks
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
files=("$@")
if [ ${#files[@]} = 0 ]; then
  mapfile -t files < <(git ls-files '*.cc' ':!tests' ':!bench' ':!ns3-module' ':!profiler/cuda')
fi
found=$(mktemp)
trap 'rm -f "$found"' EXIT
printf '%s\n' "${files[@]}" | xargs -P "${JOBS:-1}" -n 1 clang-tidy-14 -p "$build" --quiet \
  --extra-arg=-Wno-unknown-warning-option 2> /dev/null | grep -E '(error|warning): ' | sed "s|^$PWD/||" | sort -u > "$found" || true
# A line of clang_tidy.txt: <check>:<file>
left=$(while read -r line; do
  file=${line%%:*}
  check=$(sed -E 's/.*\[([a-z-]+\.?[A-Za-z.-]*)[],].*/\1/' <<< "$line")
  grep -qxF "$check:$file" tests/source/clang_tidy.txt || echo "$line"
done < "$found")
echo "${#files[@]} files, $(wc -l < "$found") remarks"
if [ -n "$left" ]; then
  printf 'not explained in tests/source/clang_tidy.txt:\n%s\n' "$left"
  exit 1
fi
