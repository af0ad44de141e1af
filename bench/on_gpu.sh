#!/usr/bin/env bash
# Everything that wants a GPU, in order of worth: tests, sanitizers, a layer and its comparison with
# PyTorch, steps in PyTorch, one rank of NCCL, interference, the sweep, Aceso's tables, the jobs' profiles.
#
#   bench/on_gpu.sh [--build DIR] [--out DIR] [--only NAMES] [--jobs FILE] [--limit N] [--deadline N]
#
# --build    folder with lockstep, liblockstep-gpu.so and gpu_kernels (here or in tests/unit); default: build
# --out      results; default: gpu-results
# --only     of: tests sanitizer layer torch step run interference sweep aceso jobs; default: all
# --jobs     what is profiled; default: bench/profiled_jobs.txt
# --limit    seconds in which jobs are begun; default: 300
# --deadline seconds from now; jobs get no more than is left of them; default: 3600
#
# Clocks and modes of the GPU are left as they are. Every command is written to commands.txt with
# its seconds and exit code; what it prints is in NAME.txt.
set -uo pipefail
cd "$(dirname "$0")/.."
build=build out=gpu-results only="tests sanitizer layer torch step run interference sweep aceso jobs"
jobs=bench/profiled_jobs.txt limit=300 deadline=3600
while (($# > 0)); do
  case $1 in
    --build) build=$2 ;;
    --out) out=$2 ;;
    --only) only=$2 ;;
    --jobs) jobs=$2 ;;
    --limit) limit=$2 ;;
    --deadline) deadline=$2 ;;
    *) printf 'on_gpu.sh: unknown argument %s\n' "$1" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$out"
lockstep=$build/lockstep
[[ -x $lockstep ]] || { printf 'on_gpu.sh: %s is not there: build first\n' "$lockstep" >&2; exit 2; }
tests=$build/tests/unit/gpu_kernels
[[ -x $tests ]] || tests=$build/gpu_kernels
# Libraries that come with PyTorch's wheels, where the system has none. Not for Python itself.
folders=$(python3 - <<'PY' 2>/dev/null
import glob, os, sysconfig
print(":".join(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib"))))
PY
)
ours=(env "LD_LIBRARY_PATH=$build/lib:$folders:${LD_LIBRARY_PATH:-}")
failed=0
# say NAME SECONDS COMMAND…: runs it, at most so long.
say() {
  local name=$1 most=$2 begin=$SECONDS code=0
  shift 2
  timeout -k 5 "$most" "$@" >"$out/$name.txt" 2>&1 || code=$?
  printf '%4d s, exit %d: %s\n' "$((SECONDS - begin))" "$code" "$*" | tee -a "$out/commands.txt"
  ((code == 0)) || { failed=1; tail -n 15 "$out/$name.txt"; }
}
wanted() { [[ " $only " == *" $1 "* ]]; }

{
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu,power.limit --format=csv
  "${ours[@]}" "$lockstep" doctor
} >"$out/gpu.txt" 2>&1
cat "$out/gpu.txt"
gpu_type=H100
grep -q H200 "$out/gpu.txt" && gpu_type=H200

if wanted tests; then say tests 75 "${ours[@]}" "$tests" --gtest_brief=1; fi
if wanted sanitizer; then
  for tool in memcheck racecheck; do
    say "$tool" 40 "${ours[@]}" compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" --gtest_brief=1 \
      --gtest_filter='Gpu*-*Every*:*Fused*:*Slows*:*Turns*:*Products*'
  done
fi
if wanted layer; then
  say layer 60 "${ours[@]}" "$lockstep" profile --model gpt3-6.7b --gpus 1 --seq 2048 -o "$out/layer"
  say alone 60 "${ours[@]}" "$lockstep" profile --model gpt3-6.7b --gpus 1 --seq 2048 --no-load -o "$out/alone"
fi
if wanted torch; then
  for file in "$out"/alone/*.measurements.json; do
    say vs-torch 60 python3 bench/profile_vs_torch.py "$file"
  done
fi
if wanted step; then
  # model, layers, width, heads, sequences a microbatch, microbatches
  while read -r model layers width heads mbs batches; do
    name=$model-$layers-$mbs-$batches
    job=(--model "$model" --num-layers "$layers" --gpus 1 --seq 2048 --mbs "$mbs")
    say "step-profile-$name" 60 "${ours[@]}" "$lockstep" profile "${job[@]}" -o "$out/step-$name"
    say "step-simulated-$name" 30 "${ours[@]}" "$lockstep" simulate "${job[@]}" --gbs $((mbs * batches)) \
      --gpu-type "$gpu_type" --engine flow --topology single-switch:g=1,gpus-per-server=1 -q \
      --profile "$out/step-$name"/*.profile.json --json
    say "step-torch-$name" 60 python3 bench/gpt_step_torch.py --layers "$layers" --hidden "$width" \
      --heads "$heads" --seq 2048 --mbs "$mbs" --microbatches "$batches" --simulated "$out/step-simulated-$name.txt"
  done <<'CASES'
gpt3-1.3b 24 2048 16 1 1
gpt3-1.3b 24 2048 16 1 4
gpt3-6.7b 8 4096 32 2 2
CASES
fi
if wanted run; then
  say run 60 "${ours[@]}" "$lockstep" run --workload tests/data/run/one-gpu.txt --iterations 5 --warmups 2 --compute gemm \
    -o "$out/run"
fi
if wanted interference; then say interference 60 "${ours[@]}" "$lockstep" profile --interference -o "$out"; fi
if wanted sweep; then
  say sweep 120 "${ours[@]}" "$lockstep" profile --sweep --sweep-seq 2048,4096 --sweep-mbs 1,2 -o "$out/sweep"
fi
if wanted aceso; then
  say aceso 150 "${ours[@]}" "$lockstep" profile --aceso-size 1_3B --aceso-mbs 1,2,4,8 --aceso-tp 1,2,4,8 \
    -o "$out/aceso"
  say aceso-alone 30 "${ours[@]}" "$lockstep" profile --aceso-size 1_3B --aceso-mbs 2 --aceso-tp 1 --no-load \
    -o "$out/aceso-alone"
  say aceso-vs-torch 60 python3 bench/profile_vs_torch.py "$out"/aceso-alone/*.measurements.json
fi
if wanted jobs; then
  left=$((deadline - SECONDS - 15))
  limit=$((limit < left ? limit : left))
  ((limit > 0)) || limit=1
  say jobs $((limit + 60)) "${ours[@]}" "$lockstep" profile --jobs "$jobs" --limit "$limit" -o "$out/profiles"
fi
cat "$out/commands.txt"
exit $failed
