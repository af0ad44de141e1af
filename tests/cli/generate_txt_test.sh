#!/usr/bin/env bash
# A step as it is written to a .txt gets a note, whose command writes SimAI's text of the same job.
# Usage: generate_txt_test.sh <lockstep>
set -euo pipefail
lockstep=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() {
  printf 'FAILED: %s\n' "$@"
  exit 1
}

"$lockstep" generate --model llama3-8b --gpus 16 --tp 4 --pp 2 --gbs 8 --sp --zero 1 -o "$out/step.txt" 2>"$out/notes"
[[ $(head -c 1 "$out/step.txt") == '{' ]] || fail "the step is no JSON"
grep -q "step.txt is not SimAI's text but the step as it is" "$out/notes" || fail "no note: $(<"$out/notes")"
grep -q "SimAI's text of it (without grouped queries) is written by" "$out/notes" || fail "$(<"$out/notes")"
command=$(sed -n 's/^  lockstep //p' "$out/notes")
read -ra words <<<"$command"
"$lockstep" "${words[@]}" -q
head -n 1 "$out/step.txt" >"$out/first"
for text in 'model_parallel_NPU_group: 4' 'all_gpus: 16' 'pp: 2'; do
  grep -q "$text" "$out/first" || fail "'$text' is not in the first line: $(<"$out/first")"
done
[[ $(sed -n 2p "$out/step.txt") -gt 100 ]] || fail "layers are missing: $(sed -n 2p "$out/step.txt")"

# An MoE of Mixtral's kind has its experts' flags; a name that is no .txt and -q have no note.
"$lockstep" generate --model mixtral-8x7b --gpus 8 --ep 8 -o "$out/moe.txt" 2>"$out/notes"
grep -q -- '--moe_enable --num_experts 8 --topk 2 --ep 8' "$out/notes" || fail "$(<"$out/notes")"
read -ra words <<<"$(sed -n 's/^  lockstep //p' "$out/notes")"
"$lockstep" "${words[@]}" -q
grep -q 'mlp_moelayer' "$out/moe.txt" || fail "no experts in $(head -n 1 "$out/moe.txt")"
"$lockstep" generate --model llama3-8b --gpus 8 -o "$out/step.json" 2>"$out/notes"
! grep -q "SimAI" "$out/notes" || fail "a note on JSON"
"$lockstep" generate --model llama3-8b --gpus 8 -q -o "$out/step.txt" 2>"$out/notes"
[[ ! -s $out/notes ]] || fail "-q: $(<"$out/notes")"
# Latent attention has no such flags; the note of what is there stays.
"$lockstep" generate --model deepseek-v2-lite --gpus 8 --ep 8 -o "$out/mla.txt" 2>"$out/notes"
grep -q "is not SimAI's text" "$out/notes" || fail "no note"
! grep -q "is written by" "$out/notes" || fail "$(<"$out/notes")"
