#!/usr/bin/env bash
# The packed .tar.gz holds the program, its papers and the samples, and the program runs from there;
# the .deb, where Debian's tools are here, holds the program and names the libraries it needs.
# Usage: package_test.sh <build folder>
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cpack --config "$1/CPackConfig.cmake" -G TGZ -B "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
tar -xzf "$scratch"/lockstep-*.tar.gz -C "$scratch"
root=$(echo "$scratch"/lockstep-*/)
failures=0
for path in bin/lockstep share/doc/lockstep/README.md share/doc/lockstep/LICENSE \
  share/doc/lockstep/docs/architecture.md share/lockstep/samples/README.md \
  share/lockstep/samples/gpt13b-128gpu-tp8.txt; do
  [[ -f $root/$path ]] || { echo "FAILED: the package lacks $path"; failures=1; }
done
strays=$(find "$root" -name CMakeLists.txt -o -name '*.cc' -o -name '*.h')
[[ -z $strays ]] || { echo "FAILED: the package holds $strays"; failures=1; }
"$root/bin/lockstep" --version >/dev/null || failures=1
if [[ -f $root/bin/lockstep-packet ]]; then
  "$root/bin/lockstep-packet" --version >/dev/null || failures=1
  [[ -f $root/share/doc/lockstep/LICENSE.lockstep-packet ]] || { echo "FAILED: no GPL text"; failures=1; }
fi
if command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null; then
  cpack --config "$1/CPackConfig.cmake" -G DEB -B "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
  contents=$(dpkg-deb --contents "$scratch"/lockstep_*.deb)
  [[ $contents == *bin/lockstep$'\n'* ]] || { echo "FAILED: the .deb lacks the program"; failures=1; }
  needs=$(dpkg-deb --field "$scratch"/lockstep_*.deb Depends)
  [[ $needs == *libfmt* ]] || { echo "FAILED: the .deb does not name its libraries"; failures=1; }
fi
exit "$failures"
