# A quote is not closed.
ARGS="--num-layers 4
torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
