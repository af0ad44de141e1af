// Logs of Megatron-LM as the launches that they are of.
#include "generator/megatron_args/training_log.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "generator/exact/job_flags.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/model/parameters.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using lockstep::testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Arguments = std::vector<std::pair<std::string, std::string>>;

/// As arguments.py prints it.
std::string line_of(std::string_view name, std::string_view value) {
  const std::size_t dots = name.size() < 48 ? 48 - name.size() : 0;
  return fmt::format("  {} {} {}\n", name, std::string(dots, '.'), value);
}

std::string log_of(const Arguments& more, std::string_view behind = "",
                   std::string_view before = "") {
  Arguments all = {{"num_layers", "4"},
                   {"hidden_size", "64"},
                   {"num_attention_heads", "4"},
                   {"vocab_size", "100"},
                   {"max_position_embeddings", "32"},
                   {"seq_length", "32"},
                   {"micro_batch_size", "2"},
                   {"world_size", "8"},
                   {"tensor_model_parallel_size", "1"}};
  all.insert(all.end(), more.begin(), more.end());  // of two the last counts
  std::string text =
      fmt::format("{}------------------------ arguments ------------------------\n", before);
  for (const auto& [name, value] : all) {
    text += std::string(before) + line_of(name, value);
  }
  return text + fmt::format("{}-------------------- end of arguments ---------------------\n{}",
                            before, behind);
}

struct Read {
  Job job;
  std::vector<std::string> warnings;
};

Read job_of(const std::string& text) {
  Warnings warnings;
  ArgValues args = parse_args({job_flags()}, {});
  apply_megatron_job(MegatronLaunch::parse(text, "train.log"), args, warnings);
  Read read;
  read.job = job_from_flags(args);
  for (const Warnings::Entry& entry : warnings.entries()) {
    read.warnings.push_back(entry.text);
  }
  return read;
}

Model model_of(const std::string& text) {
  return megatron_model(MegatronLaunch::parse(text, "train.log"), {});
}

TEST(TrainingLog, ArgumentsAreFlagsAgain) {
  const Read read = job_of(log_of({{"tensor_model_parallel_size", "2"},
                                   {"pipeline_model_parallel_size", "2"},
                                   {"virtual_pipeline_model_parallel_size", "2"},
                                   {"num_layers_per_virtual_pipeline_stage", "1"},
                                   {"global_batch_size", "16"},
                                   {"bf16", "True"},
                                   {"sequence_parallel", "True"},
                                   {"overlap_grad_reduce", "True"},
                                   {"overlap_param_gather", "False"},
                                   {"use_distributed_optimizer", "True"},
                                   {"recompute_granularity", "None"}}));
  EXPECT_THAT(read.warnings, IsEmpty());
  EXPECT_EQ(read.job.gpus, 8);
  EXPECT_EQ(read.job.tp, 2);
  EXPECT_EQ(read.job.pp, 2);
  EXPECT_EQ(read.job.vpp, 2);
  EXPECT_EQ(read.job.global_batch, 16);
  EXPECT_EQ(read.job.precision, Precision::kBf16);
  EXPECT_EQ(read.job.sharding, Sharding::kZero1);
  EXPECT_TRUE(read.job.sequence_parallel);
  EXPECT_TRUE(read.job.overlap_gradients);
  EXPECT_FALSE(read.job.overlap_parameters);
}

TEST(TrainingLog, DefaultsChangeNothing) {
  const Read read = job_of(log_of({{"attention_backend", "AttnBackend.auto"},
                                   {"cp_comm_type", "['p2p']"},
                                   {"deepspeed", "False"},
                                   {"exp_avg_dtype", "torch.float32"},
                                   {"fp8", "None"},
                                   {"fp8_recipe", "delayed"},
                                   {"fp8_wgrad", "True"},
                                   {"main_grads_dtype", "torch.float32"},
                                   {"moe_token_dispatcher_type", "allgather"},
                                   {"num_distributed_optimizer_instances", "1"},
                                   {"num_experts", "None"},
                                   {"overlap_p2p_comm", "False"},
                                   {"params_dtype", "torch.float32"},
                                   {"spec", "None"},
                                   {"tp_comm_overlap_ag", "True"},
                                   {"wandb_project", ""},
                                   {"window_size", "None"}}));
  EXPECT_THAT(read.warnings, IsEmpty());
  EXPECT_EQ(read.job.precision, Precision::kFp32);
  EXPECT_THAT(unread_flags(MegatronLaunch::parse(log_of({{"lr", "0.1"}}), "train.log")), IsEmpty());
}

TEST(TrainingLog, ArgumentsWhoseFlagSaysTheOpposite) {
  const std::string with = log_of({{"add_bias_linear", "True"}}),
                    without = log_of({{"add_bias_linear", "False"}});
  // Per layer 3 h + h of attention and 4 h + h of the MLP.
  EXPECT_EQ(model_parameters(model_of(with)).total - model_parameters(model_of(without)).total,
            4 * 9 * 64);
  const std::string positions = log_of({{"add_position_embedding", "False"}});
  EXPECT_EQ(model_parameters(model_of(with)).total - model_parameters(model_of(positions)).total,
            32 * 64);
}

TEST(TrainingLog, WhateverStandsBeforeALine) {
  for (const std::string_view tag :
       {"0: ", "[default0]:", "[1,0]<stdout>:", "2026-01-02T10:00:00.1Z "}) {
    EXPECT_EQ(job_of(log_of({{"tensor_model_parallel_size", "4"}}, "", tag)).job.tp, 4) << tag;
  }
}

TEST(TrainingLog, LongNamesHaveNoDots) {
  const std::string name(50, 'x');
  const TrainingLog log = read_training_log(log_of({{name, "7"}}), "train.log");
  EXPECT_EQ(log.arguments.back().name, name);
  EXPECT_EQ(log.arguments.back().value, "7");
}

TEST(TrainingLog, OtherRanksLinesComeBetween) {
  std::string text = log_of({});
  text.insert(text.find("  hidden_size"), "[rank3]:[W socket.cpp:1] a word .... and another\n");
  EXPECT_EQ(read_training_log(text, "train.log").arguments.size(), 9U);
}

TEST(TrainingLog, LinesBehindTheListTellTheVocabularyAndTheParameters) {
  const std::string text =
      log_of({{"tokenizer_type", "NullTokenizer"}},
             " > padded vocab (size: 1000) with 24 dummy tokens (new size: 1024)\n"
             "building GPT model ...\n"
             " > number of parameters on (tensor, pipeline) model parallel rank (1, 0): 5\n"
             " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 7\n"
             " > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 8\n");
  const MegatronLaunch launch = MegatronLaunch::parse(text, "train.log");
  EXPECT_EQ(launch.logged_parameters(), (std::map<std::int64_t, std::int64_t>{{0, 7}, {1, 8}}));
  EXPECT_EQ(megatron_model(launch, {}).before.front().in, 1000);
}

TEST(TrainingLog, OfSeveralListsTheLastThatIsWholeCounts) {
  const std::string first = log_of({{"tensor_model_parallel_size", "2"}}),
                    second = log_of({{"tensor_model_parallel_size", "4"}});
  const Read read = job_of(first + second);
  EXPECT_EQ(read.job.tp, 4);
  EXPECT_THAT(read.warnings.front(),
              HasSubstr("train.log:13: of 2 lists of arguments this one is taken"));
  const Read cut = job_of(first + second.substr(0, second.size() - 70));
  EXPECT_EQ(cut.job.tp, 2);
  EXPECT_THAT(cut.warnings.front(), HasSubstr("train.log:1: of 2 lists of arguments this one"));
}

TEST(TrainingLog, TheListThatIterationsFollowCounts) {
  const std::string trained = log_of({{"tensor_model_parallel_size", "2"}},
                                     " iteration 1/ 9 | elapsed time per iteration (ms): 5.0 |\n"),
                    crashed = log_of({{"tensor_model_parallel_size", "4"}});
  EXPECT_EQ(job_of(trained + crashed).job.tp, 2);
  EXPECT_EQ(job_of(crashed + trained).job.tp, 2);
  const std::string cut = crashed.substr(0, crashed.size() - 70);
  EXPECT_THAT(error_of([&] { job_of(crashed + cut + "elapsed time per iteration (ms): 5.0 |\n"); }),
              HasSubstr("train.log:13: iterations begin before this list of arguments ends"));
}

TEST(TrainingLog, WhatOtherRanksWriteRightBehindAValueIsNoneOfIt) {
  std::string text = log_of({{"use_torch_fsdp2", "False[rank3]: NCCL version 2.21.5"}});
  EXPECT_EQ(job_of(text).job.sharding, Sharding::kNone);
  const std::string both = line_of("bf16", "True") + line_of("sequence_parallel", "True");
  text = log_of({{"tensor_model_parallel_size", "2"}});
  text.insert(text.find("  hidden_size"),
              both.substr(0, both.find('\n')) + both.substr(both.find('\n') + 1));
  EXPECT_EQ(job_of(text).job.precision, Precision::kBf16);
  EXPECT_TRUE(job_of(text).job.sequence_parallel);
}

TEST(TrainingLog, ColoursAreNoPartOfIt) {
  std::string text;
  const std::string plain = log_of({{"tensor_model_parallel_size", "2"}});
  for (std::size_t at = 0; at < plain.size(); at = plain.find('\n', at) + 1) {
    text += "\x1b[32m" + plain.substr(at, plain.find('\n', at) - at) + "\x1b[0m\n";
  }
  EXPECT_EQ(job_of(text).job.tp, 2);
}

TEST(TrainingLog, WhatFollowsFromOthersFollowsTheUsersFlagsToo) {
  const std::string text = log_of({{"tensor_model_parallel_size", "2"},
                                   {"expert_tensor_parallel_size", "2"},
                                   {"ffn_hidden_size", "256"},
                                   {"kv_channels", "16"}});
  const MegatronLaunch launch = MegatronLaunch::parse(text, "train.log");
  EXPECT_FALSE(launch.has("expert-tensor-parallel-size"));
  EXPECT_FALSE(launch.has("ffn-hidden-size"));
  EXPECT_FALSE(launch.has("kv-channels"));
  EXPECT_EQ(MegatronLaunch::parse(log_of({{"ffn_hidden_size", "192"}}), "train.log")
                .whole("ffn-hidden-size", 1),
            192);
}

TEST(TrainingLog, MegatronDeepSpeedsOwnNames) {
  const Model dense = model_of(log_of({{"num_experts", "[1]"}, {"num_key_value_heads", "2"}}));
  EXPECT_EQ(model_parameters(model_of(log_of({}))).total - model_parameters(dense).total,
            4 * 2 * 2 * 16 * (64 + 1));  // layers x (k, v) x heads x width x (weights and bias)
  const MegatronLaunch experts = MegatronLaunch::parse(
      log_of({{"num_experts", "[8]"}, {"expert_interval", "2"}, {"topk", "1"}}), "train.log");
  EXPECT_EQ(experts.whole("num-experts", 1), 8);
  EXPECT_EQ(experts.whole("moe-router-topk", 1), 1);
  EXPECT_EQ(experts.joined("moe-layer-freq"), "([0]*1+[1])*2");
  const Read ulysses = job_of(log_of({{"ds_sequence_parallel_size", "4"},
                                      {"embed_layernorm", "True"},
                                      {"use_flash_attn_v2", "True"}}));
  EXPECT_EQ(ulysses.job.cp, 4);
  EXPECT_EQ(ulysses.job.context_comm, ContextComm::kAllToAll);
  EXPECT_TRUE(ulysses.job.flash_attention);
  EXPECT_THAT(ulysses.warnings.front(), HasSubstr("embed_layernorm True is not modelled"));
  EXPECT_FALSE(job_of(log_of({})).job.flash_attention);  // a list from before it
}

TEST(TrainingLog, MegatronDeepSpeed) {
  const Read read = job_of(log_of({{"deepspeed", "True"},
                                   {"zero_stage", "1.0"},
                                   {"checkpoint_activations", "True"},
                                   {"position_embedding_type", "PositionEmbeddingType.alibi"}}));
  EXPECT_EQ(read.job.sharding, Sharding::kZero1);
  EXPECT_EQ(read.job.recompute, Recompute::kFull);
  const Model alibi =
      model_of(log_of({{"position_embedding_type", "PositionEmbeddingType.alibi"}}));
  EXPECT_EQ(alibi.before.size(), 1U);  // no table of positions
}

TEST(TrainingLog, Errors) {
  const std::string whole = log_of({});
  EXPECT_THAT(error_of([&] { job_of(whole.substr(0, whole.size() - 70)); }),
              HasSubstr("train.log:1: the list of arguments ends with the file"));
  EXPECT_THAT(error_of([] {
                job_of(log_of({{"tensor_model_parallel_size", "two"}}));
              }),
              HasSubstr("train.log:11: "));
  EXPECT_THAT(error_of([] { model_of(log_of({}, "building BERT model ...\n")); }),
              HasSubstr("bert trains no GPT"));
  EXPECT_THAT(error_of([] {
                model_of(log_of({{"num_experts",
                                  "\x01"
                                  "7\x02"}}));
              }),
              HasSubstr("--num-experts"));
  EXPECT_THAT(error_of([] {
                job_of(log_of({{"deepspeed", "True"}, {"zero_stage", "4"}}));
              }),
              HasSubstr("train.log:12: --zero-stage: '4' is no stage of ZeRO"));
}

}  // namespace
}  // namespace lockstep
