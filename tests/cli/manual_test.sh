#!/usr/bin/env bash
# The manual pages of all commands: ASCII that groff takes without a warning, and every flag of
# --help in the command's page. Usage: manual_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
complain() {
  printf 'FAILED: %s\n' "$@"
  failed=1
}
"$lockstep" manual -o "$out" --quiet
pages=("$out"/*.1)
((${#pages[@]} >= 30)) || complain "only ${#pages[@]} pages"
for page in "${pages[@]}"; do
  ! LC_ALL=C grep -n '[^ -~]' "$page" || complain "$page: more than ASCII"
  ! command -v groff >/dev/null || [[ -z $(groff -man -ww -Tutf8 -z "$page" 2>&1) ]] || complain "$page: groff warns"
done
for command in simulate plan collective generate 'topology build'; do
  page=$out/lockstep-${command// /-}.1
  # shellcheck disable=SC2086 # two words
  "$lockstep" $command --help | grep -o -- '^ *\(-[a-zA-Z],\)\?--[a-z0-9-]\+' | grep -o -- '--.*' | while read -r flag; do
    sed 's/\\-/-/g; s/\\f[BIR]/ /g' "$page" | grep -E -- "(^|[ (])$flag([ ,]|\$)" >/dev/null || echo "$command: $flag"
  done >"$out/missing"
  [[ ! -s $out/missing ]] || complain "not in the manual: $(tr '\n' ' ' <"$out/missing")"
done
grep -q '^\.SH FLAGS OF PLAIN$' "$out/lockstep-topology-build.1" || complain 'no section for the flags of a template'
grep -q '\\\[u2026\]' "$out/lockstep-plan.1" || complain "the page of plan has lost its ellipsis"
exit $failed
