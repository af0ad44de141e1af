#!/bin/sh
# Times `lockstep generate` on the cases AICB was timed on: wall and CPU seconds, peak memory, lines.
# Usage: bench/generate.sh [BINARY]   (AIOB=FILE times the SimAI cases with a compute-time file)
set -eu
binary=$(realpath "${1:-build/lockstep}")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

run() {
  name=$1
  shift
  /usr/bin/time -f "%e %U %S %M" -o "$out/time" "$binary" generate "$@" -o "$out/workload" 2>/dev/null
  printf '%-14s %6s s wall %5s s user %5s s sys %7s KB %9d lines %10d bytes\n' "$name" \
    $(cat "$out/time") "$(wc -l <"$out/workload")" "$(wc -c <"$out/workload")"
}

big="--vocab_size 50257 --num_layers 128 --hidden_size 16384 --ffn_hidden_size 53248
     --num_attention_heads 128 --world_size 64 --tp 8 --sp"
aiob=${AIOB:+--aiob_enable --comp_filepath $AIOB}

run simai-small --generator simai-training --model gpt-7b --tp 1 --world_size 8 --global_batch 16 --seq_length 2048
# shellcheck disable=SC2086
run simai-large --generator simai-training $big --seq_length 4096 --global_batch 8192 $aiob
# shellcheck disable=SC2086
run simai-xl --generator simai-training $big --seq_length 4096 --global_batch 32768 $aiob
run meg-small --generator megatron --model gpt-7b --tp 2 --world_size 8 --global_batch 8
# shellcheck disable=SC2086
run meg-large --generator megatron $big --use-distributed-optimizer --computation_enable --global_batch 4096
run ds3-large --generator deepspeed3 --model llama-65b --world_size 128 --epoch_num 100
