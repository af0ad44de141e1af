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

# Tables of plan and whatif fit, too; in a pipe their lines stay whole.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
plan=(plan --model llama3-8b --gpus 16 --global-batch 16 --topology Spectrum-X:g=16 --threads 1)
whatif=(whatif --trace tests/data/whatif/two-stages.csv --meta tests/data/whatif/two-stages.yaml -o "$scratch")
for words in "${plan[*]}" "${whatif[*]}"; do
  shown=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 64 rows 50; '$lockstep' $words --quiet" /dev/null </dev/null | { grep -v '^lockstep ' || true; })
  width=$(widest <<<"$shown")
  ((width <= 64)) || complain "a line of $width characters of $words on a terminal of 64"
  [[ $(wc -l <<<"$shown") -gt 3 ]] || complain "$words shows nothing on a terminal"
  piped=$("$lockstep" $words --quiet | { grep -v '^lockstep ' || true; })
  [[ $(tr -s ' \r\n' ' ' <<<"$shown") == $(tr -s ' \r\n' ' ' <<<"$piped") ]] || complain "$words says something else on a terminal"
  ((width > 64)) || (($(widest <<<"$piped") > 64)) || complain "no line of $words is too long for the test"
done

# Those of these fit 80 columns, though not in a pipe: closer columns, engines one below the other, folded prose.
collective=(collective --op allreduce --size 1MiB:8MiB --gpus 8 --topology Spectrum-X:g=16 --engine analytic,flow)
goodput=(goodput --step 5.2s --gpus 1024 --server-mtbf 200d --checkpoint 2s --checkpoint-drain 60s --restart 5min --spares 4 --for 8w --runs 3)
memory=(generate --model llama3-70b --gpus 64 --tp 8 --pp 2 --sp --memory)
for words in "${collective[*]}" "${goodput[*]}" "${memory[*]}" "generate --list-models" "topology describe Spectrum-X:g=64" \
  "topology links Spectrum-X:g=8" "score tests/data/logs"; do
  shown=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 80 rows 50; '$lockstep' $words --quiet" /dev/null </dev/null)
  width=$(widest <<<"$shown")
  ((width <= 80)) || complain "a line of $width characters of $words on a terminal of 80"
  (($(widest < <("$lockstep" $words --quiet)) > 80)) || complain "no line of $words is too long for the test"
done
# Nor does the cache bring what was made for a terminal elsewhere, or the other way round.
export LOCKSTEP_CACHE=$scratch/cache
for _ in 1 2; do
  shown=$(TERM=xterm NO_COLOR= script -qec "stty cols 60 rows 50; '$lockstep' ${collective[*]} --quiet" /dev/null </dev/null)
  [[ $shown == *"$esc"* ]] || complain "with a cache a terminal gets what a pipe got"
  piped=$("$lockstep" "${collective[@]}" --quiet)
  [[ $piped != *"$esc"* && $(widest <<<"$piped") -gt 80 ]] || complain "with a cache a pipe gets what a terminal got"
done
unset LOCKSTEP_CACHE
# Not folded: a line is a stage, from the first column to the last.
shown=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 80 rows 50; '$lockstep' ${memory[*]} --quiet" /dev/null </dev/null)
[[ $(grep -c 'GiB.*GiB.*GiB.*GiB.*GiB' <<<"$shown") == 2 ]] || complain "the table of stages is folded: $shown"
shown=$(TERM=xterm NO_COLOR=1 script -qec "stty cols 80 rows 50; '$lockstep' ${collective[*]} --quiet" /dev/null </dev/null)
[[ $(grep -c '^ *[0-9]\{7\}  .*  \(-\|[a-z]* [a-z0-9]* x[0-9]*\).$' <<<"$shown") == 8 ]] || complain "engines are not one below the other: $shown"
exit "$failed"
