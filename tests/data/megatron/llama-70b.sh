# Llama 70B on 8 nodes, in the style of arrays.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"8"}
TP=${TP:-8}
PP=4
WORLD_SIZE=$(($GPUS_PER_NODE * $NNODES))
DP=$((WORLD_SIZE / (TP * PP)))
GBS=$((DP * 32))          # 32 microbatches
CHECKPOINT=$1
mkdir -p "$(dirname "$CHECKPOINT")"

LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr ${MASTER_ADDR:-localhost}
)
MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --seq-length 4096          # tokens
    --max-position-embeddings 4096
    --position-embedding-type rope
    --normalization RMSNorm
    --swiglu
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --tokenizer-type Llama2Tokenizer
    --tokenizer-model "${CHECKPOINT}/tokenizer.model"
)
PRECISION="bf16"
if [[ "$PRECISION" == "fp8" ]]; then
    MODEL_ARGS+=(--bf16 "--fp8-format hybrid")
else
    MODEL_ARGS+=(--bf16)
fi
CUT=(
    --tensor-model-parallel-size "$TP"
    --pipeline-model-parallel-size=${PP}
    --num-layers-per-virtual-pipeline-stage 5
#   --context-parallel-size 2
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce --overlap-param-gather
    --tp-comm-overlap
)
if [ -n "${WANDB_API_KEY}" ]; then
    CUT+=(--wandb-project lockstep)
fi

torchrun "${LAUNCH[@]}" pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    ${CUT[@]} \
    --micro-batch-size 1 --global-batch-size $GBS \
    --lr 1.5e-4 --min-lr 1.0e-5 --train-iters 500 \
    --save $CHECKPOINT 2>&1 | tee train.log
