#!/usr/bin/env bash
# Everything that wants a GPU, in one go and in order of worth: tests, profiles, the sweep, the
# comparison with PyTorch, a step in PyTorch, interference, one rank of NCCL.
#
#   bench/on_gpu.sh [--build DIR] [--out DIR] [--only NAMES] [--seconds N]
#
# --build   folder with lockstep, liblockstep-gpu.so and (in tests/unit) gpu_kernels; default: build
# --out     results; default: $OUT, else gpu-results
# --only    of: tests jobs sweep torch step interference run; default: all
# --seconds jobs are left out once so many have passed; default: 540
#
# Clocks and modes of the GPU are left as they are. Every command is written to commands.txt with
# its seconds and exit code.
set -uo pipefail
cd "$(dirname "$0")/.."
build=build out=${OUT:-gpu-results} only="tests jobs sweep torch step interference run" seconds=540
while (($# > 0)); do
  case $1 in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) printf 'on_gpu.sh: unknown argument %s\n' "$1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
lockstep=$build/lockstep
[[ -x $lockstep ]] || { printf 'on_gpu.sh: %s is not there: build first\n' "$lockstep" >&2; exit 2; }
# Libraries that come with PyTorch's wheels, where the system has none.
for folder in "$build/lib" $(python3 - <<'PY' 2>/dev/null
import glob, os, sysconfig
print(*glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib")))
PY
); do
  [[ -d $folder ]] && export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
failed=0
say() {
  local begin=$SECONDS code=0
  "$@" || code=$?
  printf '%4d s, exit %d: %s\n' "$((SECONDS - begin))" "$code" "$*" | tee -a "$out/commands.txt"
  ((code == 0)) || failed=1
}
wanted() { [[ " $only " == *" $1 "* ]] && ((SECONDS < seconds)); }

nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu,power.limit --format=csv \
  >"$out/gpu.txt" 2>&1
"$lockstep" doctor >>"$out/gpu.txt" 2>&1
cat "$out/gpu.txt"

if wanted tests; then say "$build/tests/unit/gpu_kernels" --gtest_brief=1; fi

profile() { say "$lockstep" profile "$@" -o "$out/profiles" >/dev/null; }
if wanted jobs; then
  for seq in 2048 4096 8192; do
    for mbs in 1 2 4; do
      for job in "gpt3-6.7b 1 1" "llama3-8b 1 1" "llama3-8b 8 1" "llama3-70b 8 1" "mixtral-8x7b 1 1" \
        "gpt3-13b 8 1" "gpt3-175b 8 1" "llama3.1-405b 8 1" "deepseek-v3 1 8" "deepseek-v3 1 64" \
        "llama3-8b 2 1" "llama3-8b 4 1"; do
        read -r model tp ep <<<"$job"
        ((SECONDS < seconds / 2)) || continue
        gpus=$((tp * ep)) flags=()
        ((tp == 1)) || flags+=(--sp)
        profile --model "$model" --gpus "$gpus" --tp "$tp" --ep "$ep" --seq "$seq" --mbs "$mbs" \
          --gpu-type H200 "${flags[@]}"
      done
    done
  done
  profile --model llama3-8b --gpus 1 --seq 4096 --precision fp8 --gpu-type H200
fi
if wanted sweep; then say "$lockstep" profile --sweep -o "$out/sweep" >"$out/sweep.txt"; fi
if wanted torch; then
  for file in "$out"/profiles/llama3-8b-tp1-*mbs1-seq4096-bf16.measurements.json; do
    say python3 bench/profile_vs_torch.py "$file" >"$out/vs-torch.txt"
  done
fi
if wanted step; then
  say "$lockstep" profile --model gpt3-1.3b --gpus 1 --seq 2048 --gpu-type H200 -o "$out/step" >/dev/null
  "$lockstep" simulate --model gpt3-1.3b --gpus 1 --seq 2048 --gbs 1 --gpu-type H200 --engine flow \
    --topology single-switch:g=1 --profile "$out"/step/*.profile.json --json >"$out/step.json"
  predicted=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["total_s"])' "$out/step.json")
  say python3 bench/gpt_step_torch.py --predicted "$predicted" >"$out/step.txt"
fi
if wanted interference; then say "$lockstep" profile --interference -o "$out" >"$out/interference.txt"; fi
if wanted run; then
  say "$lockstep" run --workload tests/data/run/one-gpu.txt --iterations 5 --warmups 2 --compute gemm -o "$out/run"
fi
tail -n 100 "$out"/*.txt
exit $failed
