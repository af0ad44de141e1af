// Launches of Megatron-LM as jobs and models of ours.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/exact/job_flags.h"
#include "generator/exact/rank_sizes.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/megatron_args/moe_layers.h"
#include "generator/model/parameters.h"
#include "tests/support/error_of.h"

namespace lockstep::megatron_args_test {
namespace {

using lockstep::testing::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kSmall =
    "torchrun --nnodes=2 --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 "
    "--num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --vocab-size 100 "
    "--micro-batch-size 2 ";

MegatronLaunch launch_of(std::string_view text) { return MegatronLaunch::parse(text, "train.sh"); }

struct Read {
  Job job;
  std::vector<std::string> warnings;
};

Read job_of(std::string_view text, std::vector<std::string> own = {}) {
  Warnings warnings;
  // --num-layers is a flag of the model's on our side.
  std::vector<ArgSpec> flags(job_flags().begin(), job_flags().end());
  flags.push_back({"num_layers", "", ArgKind::kInteger, "", ""});
  const ArgTable table{flags};
  ArgValues all = parse_args(table, own);
  apply_megatron_job(launch_of(text), all, warnings);
  Read read;
  read.job = job_from_flags(all);
  for (const Warnings::Entry& entry : warnings.entries()) {
    read.warnings.push_back(entry.text);
  }
  return read;
}

std::string job_error(const std::string& text, std::vector<std::string> own = {}) {
  return error_of([&] { job_of(text, std::move(own)); });
}
std::string model_error(const std::string& text) {
  return error_of([&] { megatron_model(launch_of(text), {}); });
}

TEST(MegatronArgs, ValuesThatMegatronRefuses) {
  const std::string job = std::string(kSmall) + " --use-megatron-fsdp ";
  EXPECT_THAT(job_error(job + "--data-parallel-sharding-strategy optim_grad"),
              HasSubstr("--data-parallel-sharding-strategy: unknown value 'optim_grad'"));
  EXPECT_THAT(job_error(job + "--recompute-granularity none"), HasSubstr("expected: full"));
  EXPECT_THAT(model_error(job + "--normalization RMSnorm"), HasSubstr("did you mean 'RMSNorm'?"));
  EXPECT_THAT(job_error(job + "--fp8-format hybird"), HasSubstr("did you mean 'hybrid'?"));
  EXPECT_THAT(job_error(job + "--moe-token-dispatcher-type foo"), HasSubstr("unknown value 'foo'"));
  EXPECT_THAT(job_error(job + "--transformer-impl loca"), HasSubstr("did you mean 'local'?"));
  EXPECT_THAT(model_error(job + "--position-embedding-type rotary"),
              HasSubstr("expected: learned_absolute"));
}

TEST(MegatronArgs, DefaultsAreMegatrons) {
  const Read read = job_of(kSmall);
  EXPECT_EQ(read.job.gpus, 16);
  EXPECT_EQ(read.job.precision, Precision::kFp32);
  EXPECT_TRUE(read.job.dropout);
  EXPECT_TRUE(read.job.flash_attention);
  EXPECT_FALSE(read.job.overlap_gradients || read.job.overlap_parameters);
  EXPECT_EQ(read.job.sharding, Sharding::kNone);
  EXPECT_EQ(read.job.seq, 32);
  EXPECT_EQ(read.job.micro_batch, 2);
  EXPECT_THAT(read.warnings, IsEmpty());
}

TEST(MegatronArgs, EveryFlagReachesTheJob) {
  const Job job =
      job_of(
          std::string(kSmall) +
          "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
          "--num-layers-per-virtual-pipeline-stage 1 --context-parallel-size 2 --sequence-parallel "
          "--global-batch-size 16 --bf16 --fp8-format hybrid --fp8-recipe mxfp8 "
          "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
          "--recompute-granularity selective --cp-comm-type a2a --use-tp-pp-dp-mapping "
          "--attention-dropout 0 --hidden-dropout 0.0 --attention-backend unfused "
          "--expert-model-parallel-size 2 --expert-tensor-parallel-size 2 "
          "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity "
          "--ddp-bucket-size 1000 "
          "--make-vocab-size-divisible-by 64")
          .job;
  EXPECT_EQ(job.tp * 100 + job.pp * 10 + job.vpp, 222);
  EXPECT_EQ(job.cp, 2);
  EXPECT_TRUE(job.sequence_parallel);
  EXPECT_EQ(job.global_batch, 16);
  EXPECT_EQ(job.precision, Precision::kFp8);
  EXPECT_EQ(job.fp8_recipe, Fp8Recipe::kMxfp8);
  EXPECT_EQ(job.sharding, Sharding::kZero1);
  EXPECT_TRUE(job.overlap_gradients && job.overlap_parameters);
  EXPECT_EQ(job.recompute, Recompute::kSelective);
  EXPECT_EQ(job.context_comm, ContextComm::kAllToAll);
  EXPECT_EQ(job.rank_order, "tp-cp-ep-pp-dp");
  EXPECT_FALSE(job.dropout || job.flash_attention);
  EXPECT_EQ(job.ep, 2);
  EXPECT_EQ(job.expert_tp, 2);
  EXPECT_EQ(job.moe_capacity, 1.25);
  EXPECT_EQ(job.gradient_bucket, 1000);
  EXPECT_EQ(job.vocab_multiple, 64);
}

// fp32 but for fp16, and as the flags say.
TEST(MegatronArgs, WidthOfGradients) {
  const auto width = [](const std::string& flags) {
    const Read read = job_of(std::string(kSmall) + flags);
    EXPECT_THAT(read.warnings, IsEmpty());
    return rank_sizes(read.job).gradient;
  };
  EXPECT_EQ(width("--bf16"), 4);
  EXPECT_EQ(width("--bf16 --accumulate-allreduce-grads-in-fp32"), 4);
  EXPECT_EQ(width("--bf16 --grad-reduce-in-bf16"), 2);
  EXPECT_EQ(width("--fp16"), 2);
  EXPECT_EQ(width("--fp16 --accumulate-allreduce-grads-in-fp32"), 4);
  EXPECT_EQ(width("--grad-reduce-in-bf16"), 4);  // of fp32
}

// Tokens beyond an expert's capacity are dropped; below it nothing is filled up unless asked for.
TEST(MegatronArgs, CapacityFillsUpWhereItIsPadded) {
  const auto capacity = [](const std::string& flags, const std::vector<std::string>& own = {}) {
    return job_of(std::string(kSmall) + flags, own).job.moe_capacity;
  };
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 1.25"), 0);
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 0.5"), 0.5);
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 1.25", {"--moe-imbalance", "1.5"}), 1.25);
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity"), 1.25);
}

// What overlaps with a whole product does so always; without the first flag the others say nothing.
TEST(MegatronArgs, TensorParallelTransfersOverlap) {
  const auto overlap = [](const std::string& flags) {
    const Read read =
        job_of(std::string(kSmall) + "--tensor-model-parallel-size 2 --sequence-parallel " + flags);
    EXPECT_THAT(read.warnings, IsEmpty());
    return read.job.product_overlap;
  };
  EXPECT_EQ(overlap(""), ProductOverlap());
  EXPECT_EQ(overlap("--tp-comm-overlap"), (ProductOverlap{true, true, false}));
  EXPECT_EQ(overlap("--tp-comm-overlap --disable-tp-comm-overlap-ag --tp-comm-overlap-rs-dgrad "
                    "--disable-tp-comm-bulk-wgrad --disable-tp-comm-bulk-dgrad"),
            (ProductOverlap{false, true, true}));
  EXPECT_EQ(overlap("--tp-comm-overlap --disable-tp-comm-overlap-rs"),
            (ProductOverlap{true, false, false}));
  EXPECT_EQ(overlap("--tp-comm-overlap-rs-dgrad"), ProductOverlap());
  EXPECT_THAT(job_of(std::string(kSmall) + "--tp-comm-overlap-cfg x.yaml").warnings,
              ElementsAre(HasSubstr("--tp-comm-overlap-cfg is not modelled: its pieces are")));
}

TEST(MegatronArgs, TheUsersOwnFlagsWin) {
  const std::string text = std::string(kSmall) + "--tensor-model-parallel-size $TP --bf16";
  EXPECT_EQ(job_of(text, {"--tp", "4", "--precision", "fp16", "--gpus", "8"}).job.tp, 4);
  EXPECT_EQ(job_of(text, {"--tp", "4", "--precision", "fp16"}).job.precision, Precision::kFp16);
  EXPECT_EQ(job_of(text, {"--tp=4", "--gpus=8"}).job.gpus, 8);
  EXPECT_THAT(job_error(text),
              HasSubstr("train.sh:1: --tensor-model-parallel-size: $TP is not set"));
  EXPECT_THAT(job_error(text), HasSubstr("hint: --set TP=…, or --tp in its place"));
}

TEST(MegatronArgs, WhatTheUserReplacesMayBeWrong) {
  const auto passes = [](const std::string& theirs, std::vector<std::string> own) {
    return job_error(std::string(kSmall) + theirs, std::move(own));
  };
  EXPECT_EQ(passes("--recompute-granularity partial --recompute-method x", {"--recompute=full"}),
            "no error");
  EXPECT_EQ(passes("--recompute-granularity $G", {"--recompute", "full"}), "no error");
  EXPECT_EQ(passes("--use-megatron-fsdp --data-parallel-sharding-strategy q", {"--zero=1"}),
            "no error");
  EXPECT_EQ(passes("--attention-backend flashy --transformer-impl x", {"--no_flash_attention"}),
            "no error");
  EXPECT_EQ(passes("--attention-dropout x --hidden-dropout $D", {"--dropout"}), "no error");
  EXPECT_EQ(passes("--fp8-format x", {"--precision=bf16"}), "no error");
  EXPECT_EQ(passes("--fp8-recipe $X", {"--fp8_recipe=delayed"}), "no error");
  EXPECT_EQ(passes("--cp-comm-type $X", {"--context_comm=p2p"}), "no error");
  EXPECT_EQ(passes("--moe-expert-capacity-factor x", {"--moe_capacity=2"}), "no error");
}

TEST(MegatronArgs, WarnsOfWordsThatMayHoldFlags) {
  const auto warnings = [](const std::string& more) {
    const std::string begin = "[ $(f) = 1 ] && EXTRA=--x\n";
    const MegatronLaunch launch = launch_of(begin + std::string(kSmall) + more);
    Warnings ignored;
    std::vector<std::string> texts;
    std::vector<ArgSpec> flags(job_flags().begin(), job_flags().end());
    flags.push_back({"num_layers", "", ArgKind::kInteger, "", ""});
    ArgValues all(ArgTable{flags});
    apply_megatron_job(launch, all, ignored);
    const Warnings hidden = launch.hidden_words();
    for (const Warnings::Entry& entry : hidden.entries()) {
      texts.push_back(entry.text);
    }
    return texts;
  };
  const std::string told =
      "train.sh:1: what $EXTRA holds is not known: flags among it are passed over";
  EXPECT_THAT(warnings("--bf16 $EXTRA"), ElementsAre(told));
  EXPECT_THAT(warnings("--log-throughput $EXTRA"), ElementsAre(told));
  EXPECT_THAT(warnings("--save $(pwd) --lr 1"), IsEmpty());
  EXPECT_THAT(
      job_error("[ $(f) ] && T=2\n" + std::string(kSmall) + "--tensor-model-parallel-size $T"),
      HasSubstr("train.sh:1: --tensor-model-parallel-size: $T is not known"));
}

TEST(MegatronArgs, GpusComeFromTheLauncher) {
  const auto gpus = [](std::string_view launcher) {
    return launch_of(std::string(launcher) + " pretrain_gpt.py --num-layers 1").processes();
  };
  EXPECT_EQ(gpus("torchrun --nproc_per_node 8 --nnodes 4"), 32);
  EXPECT_EQ(gpus("torchrun --nproc_per_node 8 --nnodes 1 --nnodes 4"), 32);  // the last
  EXPECT_EQ(gpus("torchrun --nproc-per-node=8"), 8);
  EXPECT_EQ(gpus("deepspeed --num_nodes 2 --num_gpus 8"), 16);
  EXPECT_EQ(gpus("mpirun -np 64 -x A=1 python"), 64);
  EXPECT_EQ(gpus("srun -N 4 --ntasks-per-node=8 python -u"), 32);
  EXPECT_EQ(gpus("srun -n 24 python"), 24);
  EXPECT_EQ(gpus("srun -n16 python"), 16);
  EXPECT_EQ(gpus("srun -N2 --ntasks-per-node=8 python"), 16);
  EXPECT_EQ(gpus("SLURM_NTASKS=12 srun python"), 12);
  EXPECT_EQ(gpus("SLURM_NTASKS=12 srun hostname\nexport SLURM_NTASKS=16\nsrun python"), 16);
  EXPECT_EQ(gpus("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun python"), 8);
  EXPECT_EQ(gpus("#SBATCH --nodes=4\nsrun --ntasks-per-node=8 python"), 32);
  EXPECT_EQ(gpus("#SBATCH --ntasks=32\nsrun --ntasks-per-node=8 python"), 32);
  EXPECT_EQ(gpus("srun --ntasks-per-node=8 python"), std::nullopt);
  EXPECT_EQ(gpus("python"), std::nullopt);
  // What belongs to programs behind the launcher.
  EXPECT_EQ(gpus("srun -N4 --ntasks-per-node 8 nice -n 19 python"), 32);
  EXPECT_EQ(gpus("srun -N 2 --ntasks-per-node=8 conda run -n meg python"), 16);
  EXPECT_EQ(gpus("srun -p gpu -l ./wrap -n 3 python"), std::nullopt);
  EXPECT_EQ(gpus("mpirun --mca btl tcp -np 16 -x A ./wrap -n 3 python"), 16);
  EXPECT_EQ(gpus("nice -n 19 python"), std::nullopt);
  EXPECT_EQ(gpus("nohup srun -l -n 8 -p long python -u"), 8);
  EXPECT_THAT(error_of([&] { gpus("torchrun --nproc_per_node gpu"); }),
              HasSubstr("train.sh:1: --nproc_per_node: 'gpu' does not say how many"));
}

TEST(MegatronArgs, WarnsOfFlagsOfInterleavingWhereChunksAreInterleaved) {
  const auto warnings = [](const std::string& flags) {
    return job_of(std::string(kSmall) + "--pipeline-model-parallel-size 2 " + flags).warnings;
  };
  const std::string chunks = "--num-layers-per-virtual-pipeline-stage 1 ";
  const std::string group = "--microbatch-group-size-per-virtual-pipeline-stage ";
  const std::string apart = "--no-overlap-p2p-communication";
  EXPECT_THAT(warnings(chunks + group + "4"),
              ElementsAre(HasSubstr(group + "4 is not modelled: groups are of as many "
                                            "microbatches as stages, 2")));
  EXPECT_THAT(warnings(chunks + apart), ElementsAre(HasSubstr(apart + " is not modelled")));
  EXPECT_THAT(warnings(chunks + group + "2"), IsEmpty());
  EXPECT_THAT(warnings(group + "4 " + apart), IsEmpty());
}

TEST(MegatronArgs, WarnsOfWhatIsNotModelled) {
  EXPECT_THAT(job_of(std::string(kSmall) + "\\\n --mtp-num-layers 1 --rampup-batch-size 16 16 100")
                  .warnings,
              ElementsAre(HasSubstr("train.sh:2: --rampup-batch-size is not modelled: the batch"),
                          HasSubstr("train.sh:2: --mtp-num-layers is not modelled")));
  for (const char* flag :
       {"window-size 127 0", "window-attn-skip-freq 2", "attention-output-gate",
        "fp32-residual-connection", "main-grads-dtype bf16", "main-params-dtype fp16",
        "exp-avg-dtype bf16", "exp-avg-sq-dtype fp8", "no-fp8-wgrad", "standalone-embedding-stage",
        "distribute-saved-activations", "ddp-num-buckets 4", "torch-fsdp2-no-reshard-after-forward",
        "moe-latent-size 512", "hybrid-override-pattern M*-", "is-hybrid-model"}) {
    const std::string_view name =
        std::string_view(flag).substr(0, std::string_view(flag).find(' '));
    EXPECT_THAT(job_of(fmt::format("{}--{}", kSmall, flag)).warnings,
                ElementsAre(HasSubstr(fmt::format("train.sh:1: --{} is not modelled: ", name))));
  }
  EXPECT_THAT(job_of(std::string(kSmall) + "--main-grads-dtype fp32 --main-params-dtype fp32 "
                                           "--exp-avg-dtype fp32 --exp-avg-sq-dtype fp32")
                  .warnings,
              IsEmpty());
  EXPECT_THAT(job_of(std::string(kSmall) + "--recompute-granularity full --recompute-method block "
                                           "--recompute-num-layers 2 --optimizer sgd")
                  .warnings,
              ElementsAre(HasSubstr("--recompute-method block"), HasSubstr("--optimizer sgd")));
}

TEST(MegatronArgs, ListsWhatItDidNotUse) {
  const MegatronLaunch launch =
      launch_of(std::string(kSmall) + "--lr 1e-4 --bf16 --no_such_flag 3");
  ArgValues args = parse_args({job_flags()}, {});
  Warnings warnings;
  apply_megatron_job(launch, args, warnings);
  megatron_model(launch, {});
  EXPECT_EQ(unread_flags(launch), "--lr, --no-such-flag");
}

TEST(MegatronArgs, BuildsAGptByDefault) {
  const Model model = megatron_model(launch_of(kSmall), {});
  // Tables (100 + 32) 64; a layer 12 h^2 + 13 h (4 biases of 3h, h, 4h, h and two norms of 2h);
  // the last norm 2h; the head is tied.
  EXPECT_EQ(model_parameters(model).total, 132.0 * 64 + 4 * (12.0 * 64 * 64 + 13 * 64) + 2 * 64);
}

TEST(MegatronArgs, BuildsALlama) {
  const Model model = megatron_model(
      launch_of(std::string(kSmall) +
                "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type "
                "rope --untie-embeddings-and-output-weights --group-query-attention "
                "--num-query-groups 2"),
      {});
  // 4h 2/3 = 170 down to 128; a layer: (4 + 4) 16 64 for q, k, v, 64^2, 3 64 128, two norms of 64.
  EXPECT_EQ(model_parameters(model).total,
            2 * 100 * 64 + 4 * (8.0 * 16 * 64 + 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64);
}

TEST(MegatronArgs, PlacesExperts) {
  const Model model = megatron_model(
      launch_of(std::string(kSmall) + "--num-experts 8 --moe-layer-freq '([0]*1+[1,1,0])'"), {});
  ASSERT_EQ(model.blocks.size(), 3U);
  EXPECT_EQ(model.blocks[0].layers, 1);
  EXPECT_EQ(model.blocks[1].layers, 2);
  EXPECT_EQ(model.blocks[1].modules.back().kind, ModuleKind::kMoe);
  EXPECT_EQ(model.blocks[1].modules.back().topk, 2);  // Megatron's default
  EXPECT_EQ(model.blocks[2].layers, 1);
}

// 4 layers, 8 experts of 256 from and to 64; Megatron's router has none.
TEST(MegatronArgs, ExpertsHaveTheBiasesOfLinearLayers) {
  const auto parameters = [](std::string_view more) {
    return model_parameters(
               megatron_model(launch_of(std::string(kSmall) +
                                        "--num-experts 8 --untie-embeddings-and-output-weights " +
                                        std::string(more)),
                              {}))
        .total;
  };
  const double attention = 3 * 64 + 64;
  EXPECT_EQ(parameters("") - parameters("--disable-bias-linear"), 4 * (attention + 8 * (256 + 64)));
  EXPECT_EQ(parameters("--swiglu") - parameters("--swiglu --disable-bias-linear"),
            4 * (attention + 8 * (2 * 128 + 64)));  // two thirds as wide, in steps of 64
}

TEST(MegatronArgs, ReadsPatternsOfLayers) {
  EXPECT_THAT(moe_layers("2", 5), ElementsAre(true, false, true, false, true));
  EXPECT_THAT(moe_layers("([0]*2+[1]*1)*1+[1]", 4), ElementsAre(false, false, true, true));
  EXPECT_THROW(moe_layers("[0]*3", 4), Error);
  EXPECT_THROW(moe_layers("[0]*999999999999", 4), Error);
  EXPECT_THROW(moe_layers("[2]", 1), Error);
  EXPECT_THROW(moe_layers("[1]*", 1), Error);
  EXPECT_THROW(moe_layers("0", 1), Error);
}

TEST(MegatronArgs, TheVocabularyFollowsFromTheTokenizer) {
  const auto vocabulary = [](const std::string& flags) {
    return megatron_model(launch_of("python pretrain_gpt.py --num-layers 1 --hidden-size 8 "
                                    "--num-attention-heads 1 --position-embedding-type rope " +
                                    flags),
                          {})
        .after.back()
        .out;
  };
  EXPECT_EQ(vocabulary("--tokenizer-type GPT2BPETokenizer --vocab-file $V"), 50257);
  EXPECT_EQ(vocabulary("--tokenizer-type NullTokenizer --vocab-size 99"), 100);
  EXPECT_EQ(vocabulary("--vocab-size 99"), 99);
  EXPECT_THAT(error_of([&] { vocabulary("--tokenizer-type HuggingFaceTokenizer"); }),
              HasSubstr("expected: --vocab-size N"));
}

TEST(MegatronArgs, ErrorsNameFileAndLine) {
  EXPECT_THAT(model_error("A=1\npython pretrain_gpt.py --hidden-size 8\n"),
              HasSubstr("train.sh:2: --num-layers is missing"));
  EXPECT_THAT(model_error("python pretrain_gpt.py \\\n--num-layers 4x"),
              HasSubstr("train.sh:2: --num-layers: '4x' is no whole number"));
  EXPECT_THAT(model_error("python pretrain_gpt.py --num-layers"),
              HasSubstr("train.sh:1: --num-layers: this flag needs a value"));
  EXPECT_THAT(model_error("python pretrain_t5.py --num-layers 4"),
              HasSubstr("pretrain_t5.py trains no GPT"));
  EXPECT_THAT(model_error("[ $(f) ] && A+=(--num-layers 2)\npython pretrain_gpt.py ${A[@]} --x 1"),
              HasSubstr("; what $A holds is not known (train.sh:1)"));
  EXPECT_THAT(model_error("python pretrain_gpt.py --hidden-size 8 --save $(pwd)"),
              Not(HasSubstr("$(pwd)")));
  EXPECT_THAT(error_of([] {
                launch_of(
                    "#SBATCH -J x\ntorchrun --nproc_per_node 8 --nnodes ${SLURM_NNODES:-1} "
                    "a.py --num-layers 1")
                    .processes();
              }),
              HasSubstr("hint: --set SLURM_NNODES=…, or --gpus in its place"));
  EXPECT_THAT(error_of([] { launch_of("while true; do\npython a.py --num-layers 1\ndone"); }),
              HasSubstr("the program that train.sh:2 starts is left out: it stands in a loop"));
  EXPECT_THAT(error_of([] { launch_of("echo hello\n"); }),
              HasSubstr("train.sh: no command here starts a training"));
  EXPECT_THAT(job_error(std::string(kSmall) + "--seq-length $(cat n)"),
              HasSubstr("train.sh:1: --seq-length: $(cat n) is not known without running"));
  EXPECT_THAT(job_error(std::string(kSmall) + "\\\n--recompute-granularity some"),
              HasSubstr("train.sh:2: --recompute-granularity: unknown value 'some'"));
  EXPECT_THAT(job_error(std::string(kSmall) + "--pipeline-model-parallel-size 2 "
                                              "--num-layers-per-virtual-pipeline-stage 3"),
              HasSubstr("4 layers on 2 stages do not divide into chunks of 3"));
}

TEST(MegatronArgs, ACommandThatIsOnlyShownIsNotTheOne) {
  EXPECT_EQ(launch_of("run=\"python a.py --num-layers 2\"\necho $run\n\neval $run\n").line(), 4U);
}

TEST(MegatronArgs, ArgumentsOfTheScriptCanBeGiven) {
  ShellVariables given;
  given.set("2", "7", 0);
  const MegatronLaunch launch =
      MegatronLaunch::parse("N=${2:-4}\npython a.py --num-layers $N", "train.sh", given);
  EXPECT_EQ(launch.whole("num-layers", 1), 7);
}

TEST(MegatronArgs, OfSeveralTrainingsTheFirstIsTaken) {
  const MegatronLaunch launch =
      launch_of("for n in 4 8; do\n  python a.py --num-layers $n\ndone\n");
  EXPECT_EQ(launch.whole("num-layers", 1), 4);
  ASSERT_EQ(launch.warnings().entries().size(), 1U);
  EXPECT_EQ(launch.warnings().entries()[0].text, "train.sh:2: the first of 2 trainings is taken");
}

TEST(MegatronArgs, AMissingBackslashIsSuspected) {
  const MegatronLaunch launch = launch_of(std::string(kSmall) + "\n--bf16\n");
  ASSERT_EQ(launch.warnings().entries().size(), 1U);
  EXPECT_THAT(launch.warnings().entries()[0].text,
              HasSubstr("train.sh:2: this line belongs to no"));
}

}  // namespace
}  // namespace lockstep::megatron_args_test
