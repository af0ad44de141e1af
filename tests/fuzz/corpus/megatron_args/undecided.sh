# A batch job whose GPUs are told apart while it runs.
#SBATCH --nodes=4
#SBATCH --gres=gpu:8,nvme:1
# What depends on this machine's GPU is not known; the rest of the flags is.
ARGS=(--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32
  --max-position-embeddings 32 --vocab-size 128 --micro-batch-size 1)
GPU=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
if [[ $GPU == *H100* ]]; then
  ARGS+=(--fp8-format hybrid)
fi
[ -f tuned.env ] || TP=2
launch() {
  srun --ntasks-per-node=8 nice -n 19 python pretrain_gpt.py "$@" --tensor-model-parallel-size "$TP"
}
launch "${ARGS[@]}"
