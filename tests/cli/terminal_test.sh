#!/usr/bin/env bash
# On a terminal tables fill its width and are coloured; NO_COLOR, a dumb terminal and a pipe take the
# colour away. Usage: terminal_test.sh <lockstep>
set -euo pipefail
lockstep=$1
failed=0
complain() {
  printf 'FAILED: %s\n' "$@"
  failed=1
}
command -v script >/dev/null || { echo "script is not here"; exit 1; }

# on_terminal <columns> <variable>...: the step's table as a terminal of that width gets it.
on_terminal() {
  local columns=$1
  shift
  env "$@" script -qec "stty cols $columns rows 50; '$lockstep' simulate --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=8" /dev/null </dev/null
}
widest() { sed 's/\x1b\[[0-9;]*m//g; s/\r//' | awk '{ if (length > most) most = length } END { print most }'; }

esc=$'\x1b['
[[ $(on_terminal 80 TERM=xterm NO_COLOR=) == *"$esc"* ]] || complain "no colour on a terminal"
[[ $(on_terminal 80 TERM=xterm NO_COLOR=1) != *"$esc"* ]] || complain "colour with NO_COLOR"
[[ $(on_terminal 80 TERM=dumb NO_COLOR=) != *"$esc"* ]] || complain "colour on a dumb terminal"
[[ $("$lockstep" simulate --workload tests/data/simulate/tiny.txt --topology Spectrum-X:g=8) != *"$esc"* ]] ||
  complain "colour in a pipe"
for columns in 64 100 140; do
  width=$(on_terminal "$columns" TERM=xterm NO_COLOR=1 | widest)
  ((width <= columns)) || complain "a line of $width characters on a terminal of $columns"
done
narrow=$(on_terminal 64 TERM=xterm NO_COLOR=1 | widest) wide=$(on_terminal 120 TERM=xterm NO_COLOR=1 | widest)
((wide > narrow)) || complain "the table is $wide wide on 120 columns, $narrow on 64"
exit "$failed"
