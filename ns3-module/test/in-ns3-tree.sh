#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Puts this folder into contrib/ of an ns-3 tree (3.37), builds it there with the modules that it
# needs, and runs its test suites and its examples with ns-3's own test.py.
# Usage: in-ns3-tree.sh [TREE]     (otherwise $LOCKSTEP_NS3_TREE; exit code 77 where neither is set)
# The tree is configured anew: a link in contrib/, cmake-cache/ and build/ are what changes in it.
set -euo pipefail
tree=${1:-${LOCKSTEP_NS3_TREE:-}}
if [[ -z $tree ]]; then
  echo "skipped: LOCKSTEP_NS3_TREE names no ns-3 tree"
  exit 77
fi
if [[ ! -x $tree/ns3 || ! -d $tree/contrib ]]; then
  echo "$tree: no ns-3 tree (3.36 or later: a program 'ns3' and a folder 'contrib' were expected)" >&2
  exit 2
fi
module=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
link=$tree/contrib/lockstep-fabric
if [[ -e $link && ! -L $link ]]; then
  echo "$link: a folder of that name is there, a link or nothing was expected" >&2
  exit 2
fi
ln -sfn "$module" "$link"
cd "$tree"
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
./ns3 configure --build-profile=release --enable-tests --enable-examples \
  --enable-modules=lockstep-fabric --filter-module-examples-and-tests=lockstep-fabric \
  "${generator[@]}"
./ns3 build -j "$(nproc)"

status=0
results() {  # name and arguments of test.py: what was run must have passed, and something must have run
  echo "== $1"
  local said
  said=$(./test.py --no-build "${@:2}" 2>&1) || status=1
  echo "$said"
  grep -Eq '^[1-9][0-9]* of [1-9][0-9]* tests passed' <<<"$said" || status=1
  if grep -Eq '^(FAIL|CRASH|SKIP)|[1-9][0-9]* (skipped|failed|crashed)' <<<"$said"; then status=1; fi
}
results 'test suites' --suite='lockstep-*'
results 'example' --example='incast*'
exit $status
