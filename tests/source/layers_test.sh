#!/usr/bin/env bash
# Every #include of the project's own headers obeys layers.txt.
set -euo pipefail
table=$(dirname "$0")/layers.txt

grep -v '^#' "$table" | awk 'NF { print $1 }' | while read -r folder; do
  [[ ! -d $folder ]] || grep -rnE --include='*.cc' --include='*.h' '^ *# *include "' "$folder" || true
done | awk -v table="$table" '
  BEGIN {
    while ((getline line < table) > 0) {
      count = split(line, word, " ")
      if (count == 0 || word[1] ~ /^#/) continue
      listed[word[1]] = 1
      allowed[word[1], word[1]] = 1
      for (i = 2; i <= count; ++i) allowed[word[1], word[i]] = 1
    }
  }
  # The listed folder a path lies in, the longest first; empty if none.
  function folder_of(path) {
    while (sub("/[^/]*$", "", path)) if (path in listed) return path
    return ""
  }
  {
    split($0, part, ":")
    from = folder_of(part[1])
    header = $0
    sub(/^[^"]*"/, "", header)
    sub(/".*/, "", header)
    to = folder_of(header)
    ++seen
    if (to != "" && !((from, to) in allowed) && !((from, header) in allowed)) {
      printf "%s:%s: %s may not include %s\n", part[1], part[2], from, header
      failed = 1
    }
  }
  END {
    printf "%d includes\n", seen
    exit failed || seen < 100
  }'
