#!/usr/bin/env bash
# cppcheck over every source but tests and benchmarks: what it says is either mended or stands in
# cppcheck.txt with the reason why it is not so.
set -euo pipefail
if ! command -v cppcheck > /dev/null; then
  echo "SKIPPED: cppcheck is not here (./setup installs it)"
  exit 77
fi
files=$(mktemp)
trap 'rm -f "$files"' EXIT
git ls-files '*.cc' ':!tests' ':!bench' > "$files"
cppcheck --enable=warning,performance,portability --std=c++20 --language=c++ --max-configs=1 -q -I. \
  --suppressions-list=tests/source/cppcheck.txt --error-exitcode=1 --file-list="$files"
echo "$(wc -l < "$files") files"
