TP=1 PP=8 EP=32
ARGS="--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128
 --qk-pos-emb-head-dim 64 --v-head-dim 128 --qk-layernorm
 --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048
 --moe-shared-expert-intermediate-size 2048 --moe-layer-freq ([0]*3+[1]*58)
 --moe-token-dispatcher-type flex --vocab-size 129280 --untie-embeddings-and-output-weights
 --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
 --attention-dropout 0 --hidden-dropout 0 --bf16 --fp8-format e4m3 --fp8-recipe blockwise"
python -m torch.distributed.run --nnodes 32 --nproc-per-node 8 pretrain_gpt.py $ARGS \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --expert-model-parallel-size $EP --decoder-last-pipeline-num-layers 5 \
  --use-distributed-optimizer --seq-length 4096 --micro-batch-size 1 --global-batch-size 1024 \
  --mtp-num-layers 1
