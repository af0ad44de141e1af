// The operations of small jobs, counted by hand.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/generator.h"

namespace lockstep::generator_csv_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GeneratedWorkload workload_of(const std::string& generator, const std::string& flags) {
  GenerateRequest request;
  for (const std::string_view word : split_blanks(flags)) {
    request.words.emplace_back(word);
  }
  return generator_named(generator).generate(request);
}

/// "all_reduce dp 64" for every row between the first and the second end of an epoch; a reduction
/// to one rank ends in "to RANK", a point-to-point row in its direction.
std::vector<std::string> first_epoch(const std::string& generator, const std::string& flags) {
  const std::string text = to_text(workload_of(generator, flags));
  std::vector<std::string> rows;
  int ends = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> cells = split(line, ',');
    if (cells[0] == "CommType.epoch_end") {
      ++ends;
    } else if (ends == 1 && cells.size() == 12) {
      std::string row = fmt::format("{} {} {}", cells[0].substr(9),
                                    cells[1] == "None" ? "-" : cells[1].substr(10, 2), cells[3]);
      row += cells[5] == "None" ? "" : fmt::format(" to {}", cells[5]);
      row += cells[7].empty() ? "" : fmt::format(" {}", cells[7]);
      rows.push_back(row);
    }
  }
  EXPECT_EQ(ends, 2);
  return rows;
}

// h = 8, a = 2, f = 32, s = 4, b = 1, V -> 16, tp = 2: 2 b s h = 64, losses 4 s b = 16.
//   N = embedding 4 8 8 + 4 8 = 288, attention 8 12 + 8 4 = 128, norms 24, mlp 256, head 64 = 760
constexpr const char* kTiny =
    "--hidden_size 8 --num_attention_heads 2 --seq_length 4 --num_layers 1 --vocab_size 16 "
    "--make_vocab_size_divisible_by 8 --tp 2 ";

TEST(MegatronCsv, SequenceParallelStep) {
  EXPECT_THAT(
      first_epoch("megatron", std::string(kTiny) + "--sp --world_size 2 --global_batch 1"),
      ElementsAre("broadcast tp 40", "broadcast tp 48", "all_reduce tp 64",        // inputs
                  "all_gather tp 64", "reduce_scatter tp 64",                      // attention
                  "all_gather tp 64", "reduce_scatter tp 64",                      // mlp
                  "all_reduce tp 16", "all_reduce tp 16", "all_reduce tp 16",      // losses
                  "all_reduce dp 4",                                               //
                  "all_gather tp 64", "reduce_scatter tp 64", "all_gather tp 64",  // attention
                  "all_gather tp 64", "reduce_scatter tp 64", "all_gather tp 64",  // mlp
                  "all_reduce tp 64",                                              // embedding
                  "all_reduce dp 3040", "all_reduce tp 0", "all_reduce tp 4"));    // step
}

TEST(MegatronCsv, FirstStageOfAPipeline) {
  // Two microbatches over two stages: one warm-up, one steady, one cool-down; the step comes twice.
  EXPECT_THAT(first_epoch("megatron",
                          "--hidden_size 8 --num_attention_heads 2 --seq_length 4 --num_layers "
                          "2 --vocab_size 8 --make_vocab_size_divisible_by 8 --world_size 2 "
                          "--pp 2 --global_batch 2 --workload_only"),
              ElementsAre("broadcast tp 40", "broadcast tp 48", "isend pp 64 send_next",  //
                          "broadcast tp 40", "broadcast tp 48", "irecv pp 64 recv_next",
                          "isend pp 64 send_next", "irecv pp 64 recv_next",  //
                          "all_reduce dp 2288", "all_reduce tp 0", "all_reduce tp 4",
                          "all_reduce dp 2288", "all_reduce tp 0", "all_reduce tp 4"));
  // N = 4 8 8 + 32 + (256 + 24 + 512) + 64 = 1144, 4 N / pp = 2288
}

/// The messages between stages of one stage of three, "s" and "r" for send and receive, ">" and "<"
/// for the next stage and the one before.
std::string messages_of_stage(const std::string& flags) {
  std::string text;
  for (const std::string& row :
       first_epoch("megatron",
                   "--hidden_size 8 --num_attention_heads 2 --seq_length 4 --num_layers 3 "
                   "--vocab_size 8 --world_size 3 --pp 3 --global_batch 4 " +
                       flags)) {
    if (row.find(" pp 64 ") != std::string::npos) {
      text += row[1] == 's' ? 's' : 'r';
      text += row.ends_with("next") ? '>' : '<';
    }
  }
  return text;
}

// Four microbatches over three stages. Without --workload_only AICB asks the process for its stage;
// here --pp_rank says it. What a stage sends on, the next one receives, and back.
TEST(MegatronCsv, EveryStageOfAPipeline) {
  EXPECT_EQ(messages_of_stage("--pp_rank 0"), "s>s>r>s>r>s>r>r>");
  EXPECT_EQ(messages_of_stage("--pp_rank 1"), "r<s>r<r>s>s<r<r>s>s<r<r>s>s<r>s<");
  EXPECT_EQ(messages_of_stage("--pp_rank 2"), "r<s<r<s<r<s<r<s<");
  EXPECT_EQ(messages_of_stage("--pp_rank 2 --workload_only"), messages_of_stage(""));
  EXPECT_THROW(messages_of_stage("--pp_rank 3"), Error);
  EXPECT_NO_THROW(workload_of("megatron", "--pp_rank 3 --num_layers 1"));
}

TEST(MegatronCsv, NameIsCutAtTheFirstDot) {
  EXPECT_EQ(workload_of("megatron", "--model_name gpt_1.3B").file_name,
            "megatron_gpt_1_workload.csv");
  EXPECT_EQ(workload_of("megatron", "--model_name meta/llama").file_name,
            "llama_sp_False_iteration_1_computationEnable_False_1n_workload.csv");
  EXPECT_EQ(workload_of("megatron", "--model_name ../../evil.x").file_name, "evil_workload.csv");
}

// V = 6, h = 4, f = 8, one layer: 24, 4, 3 x 16, 16, 4, 3 x 32, 4, 24: 220 elements.
constexpr const char* kLlama =
    "--frame DeepSpeed --hidden_size 4 --num_attention_heads 2 --ffn_hidden_size 8 --vocab_size 6 "
    "--num_layers 1 --world_size 2 --global_batch 2 ";

TEST(DeepSpeedCsv, BucketsOfStage1) {
  EXPECT_THAT(first_epoch("deepspeed12", std::string(kLlama) + "--stage 1 --reduce_bucket_size 100 "
                                                               "--allgather_bucket_size 100"),
              ElementsAre("all_reduce dp 184",                         // head norm up down
                          "all_reduce dp 200",                         // gate norm o v k q
                          "all_reduce dp 56",                          // norm embedding
                          "all_reduce dp 1",                           //
                          "all_gather dp 220", "all_gather dp 220"));  // two shards of 110
}

TEST(DeepSpeedCsv, OwnersOfStage2) {
  EXPECT_THAT(first_epoch("deepspeed12", std::string(kLlama) + "--stage 2 --contiguous_gradients"),
              ElementsAre("reduce dp 220 to 0", "reduce dp 220 to 1", "all_reduce dp 1",
                          "all_gather dp 440"));
}

// Three microbatches in one bucket: each is cut anew, and the last piece of one is not the first of
// the next.
TEST(DeepSpeedCsv, AStage2BucketOverMicrobatches) {
  EXPECT_THAT(
      first_epoch("deepspeed12",
                  "--frame DeepSpeed --hidden_size 4 --num_attention_heads 1 --vocab_size 2 "
                  "--num_layers 0 --stage 2 --contiguous_gradients --world_size 2 "
                  "--global_batch 6"),
      ElementsAre("reduce dp 20 to 0", "reduce dp 20 to 1", "reduce dp 20 to 0",
                  "reduce dp 20 to 1", "reduce dp 20 to 0", "reduce dp 20 to 1", "all_reduce dp 1",
                  "all_gather dp 40"));
}

// Embedding 0..8, norm 8..12, head 12..20, all of one owner; a bucket of 16. The first microbatch
// reduces norm and head (8..20) and keeps the embedding; with the second one's head that is from
// where the head begins to where the embedding ends: 8 - 12 elements; the step has the rest, 0..12.
TEST(DeepSpeedCsv, OneOwnersBucketOverMicrobatches) {
  EXPECT_THAT(
      first_epoch("deepspeed12",
                  "--frame DeepSpeed --hidden_size 4 --num_attention_heads 1 --vocab_size 2 "
                  "--num_layers 0 --stage 2 --contiguous_gradients --reduce_bucket_size 16 "
                  "--world_size 1 --global_batch 2"),
      ElementsAre("reduce dp 24 to 0", "reduce dp -8 to 0", "reduce dp 24 to 0", "all_reduce dp 1",
                  "all_gather dp 40"));
}

// Embedding 0..8, norm 8..12, head 12..20 over five owners of 4. The bucket of 12 holds norm and
// head, and the norm begins where owner 1 ends: an empty piece goes to it.
TEST(DeepSpeedCsv, AnEmptyPieceOfTheOwnerBefore) {
  EXPECT_THAT(
      first_epoch("deepspeed12",
                  "--frame DeepSpeed --hidden_size 4 --num_attention_heads 1 --vocab_size 2 "
                  "--num_layers 0 --stage 2 --contiguous_gradients --reduce_bucket_size 12 "
                  "--world_size 5 --global_batch 5"),
      ElementsAre("reduce dp 0 to 1", "reduce dp 8 to 2", "reduce dp 8 to 3", "reduce dp 8 to 4",
                  "reduce dp 8 to 0", "reduce dp 8 to 1", "all_reduce dp 1", "all_gather dp 40"));
}

// Parameters of 8, 4 and 8 elements, two microbatches. The first learns the order; the second
// gathers {0, 1} and, at parameter 1, {2, 0}, which uses the order up: 0 is still there at the end.
TEST(DeepSpeedCsv, Stage3GathersAhead) {
  EXPECT_THAT(
      first_epoch("deepspeed3",
                  "--frame DeepSpeed --hidden_size 4 --num_attention_heads 1 --vocab_size 2 "
                  "--num_layers 0 --world_size 2 --global_batch 4 --prefetch_bucket_size 10 "
                  "--max_live_parameters 1000 --param_persistence_threshold 0"),
      ElementsAre("all_gather dp 16", "all_gather dp 8", "all_gather dp 16",  //
                  "all_gather dp 16", "all_gather dp 8", "all_gather dp 16",  //
                  "all_gather dp 24", "all_gather dp 32",                     //
                  "all_gather dp 16", "all_gather dp 8",                      //
                  "reduce_scatter dp 80", "all_reduce dp 1", "all_reduce dp 8"));
}

TEST(Collective, SizesDouble) {
  EXPECT_THAT(first_epoch("collective",
                          "--frame collective_test --world_size 4 --test_comm all_gather "
                          "--begin_size 10 --end_size 45 --iter_num 1"),
              ElementsAre("all_gather dp 10", "all_gather dp 20", "all_gather dp 40"));
}

TEST(Collective, MistakesAreNamed) {
  const auto error_of = [](const std::string& generator, const std::string& flags) {
    try {
      workload_of(generator, flags);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error_of("collective", "--test_comm allreduce"), HasSubstr("all_reduce"));
  EXPECT_THAT(error_of("collective", "--begin_size 0"), HasSubstr("--begin_size"));
  EXPECT_THAT(error_of("micro", "--multi_all_reduce_enable 1"), HasSubstr("collective"));
  EXPECT_THAT(error_of("megatron", "--frame DeepSpeed"), HasSubstr("deepspeed12"));
  EXPECT_THAT(error_of("deepspeed3", "--epoch_num 1000000000"), HasSubstr("rows"));
  EXPECT_THAT(error_of("deepspeed12", "--allgather_bucket_size 1 --hidden_size 65536"),
              HasSubstr("rows"));
  EXPECT_THAT(error_of("collective", "--iter_num 1000000000 --epoch_num 9"), HasSubstr("rows"));
}

TEST(Micro, LinesOfATest) {
  const GeneratedWorkload workload =
      workload_of("micro", "--test_comm alltoall --begin_size 1 --end_size 2");
  EXPECT_EQ(workload.file_name, "micro_alltoall.txt");
  EXPECT_EQ(to_text(workload),
            "MICRO\n2\n"
            "micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLTOALL\t1\t1\n"
            "micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLTOALL\t2\t1\n");
}

}  // namespace
}  // namespace lockstep::generator_csv_test
