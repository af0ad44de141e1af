# TP is to come from the environment.
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \
  --tensor-model-parallel-size $TP --vocab-size 100 --seq-length 32 --max-position-embeddings 32
