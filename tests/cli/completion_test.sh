#!/usr/bin/env bash
# Loads `lockstep completion bash` and completes command lines with it; checks the zsh script's
# syntax where there is a zsh.
# Usage: completion_test.sh <lockstep>
set -euo pipefail
lockstep=$1

source <("$lockstep" completion bash)

# expect <wanted words> -- <word>...: what the last word can become.
failures=0
expect() {
  local wanted=$1
  shift 2
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _lockstep || true # compgen fails where nothing matches
  if [[ "${COMPREPLY[*]}" != "$wanted" ]]; then
    printf 'FAILED: %s: got "%s", expected "%s"\n' "$*" "${COMPREPLY[*]}" "$wanted"
    failures=$((failures + 1))
  fi
}

expect "doctor" -- lockstep doc
expect "bash zsh" -- lockstep completion ""
expect "zsh" -- lockstep completion z
expect "check" -- lockstep topology ch
expect "--json" -- lockstep doctor --j
expect "--version" -- lockstep --v
expect "" -- lockstep topology check clust # a file's name: bash completes it
expect "" -- lockstep topology build -o "" # likewise
expect "--output" -- lockstep topology build --template Spectrum-X --out

if [[ $(complete -p lockstep) != "complete -o default -F _lockstep lockstep" ]]; then
  printf 'FAILED: %s\n' "$(complete -p lockstep)"
  failures=$((failures + 1))
fi
if command -v zsh >/dev/null; then
  "$lockstep" completion zsh | zsh -n || failures=$((failures + 1))
  # Loaded in an interactive shell with the completion system it takes charge of the name.
  owner=$("$lockstep" completion zsh | zsh -f -c \
    'autoload -Uz compinit && compinit -u -D && source /dev/stdin && print -r -- $_comps[lockstep]')
  if [[ $owner != _lockstep ]]; then
    printf 'FAILED: zsh completes lockstep with "%s"\n' "$owner"
    failures=$((failures + 1))
  fi
fi
exit $((failures > 0))
