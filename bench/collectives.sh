#!/usr/bin/env bash
# CPU seconds of the flow engine's bars for collectives alone: stage by stage with the topology given
# (lone_collective), then the whole command (lockstep collective).
# Usage: collectives.sh <lone_collective> <lockstep>
set -euo pipefail
alone=$1
lockstep=$2
fabric() { printf 'Spectrum-X:g=%s,app=2048' "$1"; }

echo '# 1 GiB ring all-reduce, 1 channel, every transfer, no symmetry'
for gpus in 1024 4096; do "$alone" "$(fabric $gpus)" allreduce ring ll128 1 1GiB full every; done
echo '# the same, no symmetry, repetition skipped'
for gpus in 1024 4096; do "$alone" "$(fabric $gpus)" allreduce ring simple 1 1GiB full repeat=3; done
echo '# the same, folded'
for gpus in 4096 32768 131072; do
  for protocol in simple ll128; do "$alone" "$(fabric $gpus)" allreduce ring $protocol 1 1GiB repeat=3; done
done
echo '# 8 channels: every transfer, no symmetry; folded'
"$alone" "$(fabric 1024)" allreduce ring simple 8 64MiB full every
"$alone" "$(fabric 4096)" allreduce ring simple 8 1GiB repeat=3
echo '# double binary tree, Simple (512 KiB pieces), 16 channels, sprayed'
for size in 256MiB 512MiB 1GiB; do "$alone" "$(fabric 8192)" allreduce tree simple 16 $size spray; done
echo '# the same, hashed ECMP: nothing folds'
"$alone" "$(fabric 8192)" allreduce tree simple 16 64MiB

command() { /usr/bin/time -f '%U s user, %S s system, %M KB' "$lockstep" collective --op allreduce "$@" 2>&1 | grep -vE 'warning|^#'; }
echo '# whole command'
for gpus in 4096 32768 131072; do
  command --size 1GiB --algorithm ring --channels 1 --protocol simple --topology "$(fabric $gpus)"
done
command --size 1GiB --algorithm ring --channels 1 --jitter 1ms --topology "$(fabric 1024)"
command --size 1GiB --algorithm tree --protocol simple --spray --topology "$(fabric 8192)"
command --size 4GiB --algorithm tree --protocol simple --spray --topology "$(fabric 8192)" --error-budget 1%
