# Which of the two runs depends on the machine.
if [ "$(hostname)" = head ]; then
  torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4
else
  torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8
fi
