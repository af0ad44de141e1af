# --num-layers is missing.
torchrun --nproc_per_node 8 pretrain_gpt.py --hidden-size 64 --num-attention-heads 4
