// SimAI training workloads small enough to count by hand, AICB's quirks included.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/generator.h"

namespace lockstep::generator_simai_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string generate(const std::string& flags, const std::string& generator = "simai-training") {
  GenerateRequest request;
  for (const std::string_view word : split_blanks(flags)) {
    request.words.emplace_back(word);
  }
  return to_text(generator_named(generator).generate(request));
}

std::string error_of(const std::string& flags) {
  try {
    generate(flags);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// h = 8, a = 2, f = 4h = 32, s = 4, b = 1, V = 6 -> 8, tp = 1, L = 1, two microbatches.
//   C          = 2 b s h                        = 64
//   embedding  = 4 (V/tp) h + s h = 256 + 32    = 288
//   attention  = h 3h + h h = 192 + 64          = 256
//   mlp        = h f + f h                      = 512
//   T          = 288 + 256 + 512                = 1056 (without SP no norms, no head)
TEST(SimaiTraining, DenseWithoutSequenceParallelism) {
  EXPECT_EQ(generate("--world_size 1 --hidden_size 8 --num_layers 1 --num_attention_heads 2 "
                     "--seq_length 4 --vocab_size 6 --make_vocab_size_divisible_by 8 "
                     "--global_batch 2"),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 2 "
            "all_gpus: 1 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n"
            "17\n"
            "grad_norm\t-1\t1\tALLGATHER\t2112\t1\tNONE\t0\t1\tREDUCESCATTER\t4224\t100\n"
            "layernorm\t-1\t1\tNONE\t0\t1\tALLREDUCE\t2112\t1\tNONE\t0\t100\n"
            "embedding_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "attention_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "mlp_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "embedding_norm\t-1\t1\tALLREDUCE\t96\t1\tNONE\t0\t1\tNONE\t0\t100\n"
            "embedding_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "attention_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "mlp_layer\t-1\t1\tALLREDUCE\t64\t1\tALLREDUCE\t64\t1\tNONE\t0\t100\n"
            "embedding_norm\t-1\t1\tALLREDUCE\t96\t1\tNONE\t0\t1\tNONE\t0\t100\n"
            "cross_entropy1\t-1\t0\tALLREDUCE\t16\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "cross_entropy2\t-1\t0\tALLREDUCE\t16\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "cross_entropy3\t-1\t0\tALLREDUCE\t16\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "optimizer1\t-1\t0\tALLREDUCE\t4\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "optimizer2\t-1\t0\tALLREDUCE\t4\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "optimizer3\t-1\t0\tALLREDUCE\t4\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "optimizer4\t-1\t0\tALLREDUCE\t4\t0\tNONE\t0\t0\tNONE\t0\t100\n");
}

// The same model over tp = 2 with sequence parallelism and MoE: E = 4 experts, ep = 2, top-2.
//   dp = 4, C k = 128, dispatch = 128 / 2 = 64, routes = 2 ep E tp = 32
//   M = 2 h (f E/ep / tp) = 16 (32 2 / 2)         = 512
//   V = 6 -> 16; embedding = 4 8 8 + 32           = 288
//   attention = 8 12 + 8 4 = 128; norm = 16; head = 8 8 = 64
//   T = 288 + 128 + 16 + 512 + 64                 = 1008
TEST(SimaiTraining, ExpertsWithSequenceParallelism) {
  const std::string text = generate(
      "--world_size 8 --tp 2 --hidden_size 8 --num_layers 1 --num_attention_heads 2 "
      "--seq_length 4 --vocab_size 6 --make_vocab_size_divisible_by 8 --global_batch 4 "
      "--sp --moe_enable --ep 2 --num_experts 4 --topk 2");
  EXPECT_THAT(
      text,
      HasSubstr("\n20\n"
                "grad_norm\t-1\t1\tALLGATHER\t2016\t1\tNONE\t0\t1\tREDUCESCATTER\t4032\t100\n"
                "moe_grad_norm1\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER_DP_EP\t1024\t100\n"
                "moe_grad_norm2\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tREDUCESCATTER_DP_EP\t2048\t100\n"
                "embedding_layer\t-1\t1\tNONE\t64\t1\tNONE\t64\t1\tNONE\t0\t100\n"
                "attention_column\t-1\t1\tALLGATHER\t64\t1\tNONE\t0\t1\tNONE\t0\t100\n"
                "attention_row\t-1\t1\tREDUCESCATTER\t64\t1\tNONE\t64\t1\tNONE\t0\t100\n"
                "mlp_moelayer\t-1\t1\tALLGATHER\t32\t1\tNONE\t0\t1\tNONE\t0\t100\n"
                "mlp_moelayer\t-1\t1\tALLTOALL_EP\t64\t1\tALLTOALL_EP\t64\t1\tNONE\t0\t100\n"
                "mlp_moelayer\t-1\t1\tALLGATHER\t128\t1\tREDUCESCATTER\t128\t1\tNONE\t0\t100\n"
                "mlp_moelayer\t-1\t1\tREDUCESCATTER\t128\t1\tALLGATHER\t128\t1\tNONE\t0\t100\n"
                "mlp_moelayer\t-1\t1\tALLTOALL_EP\t64\t1\tALLTOALL_EP\t64\t1\tNONE\t0\t100\n"
                "final_column\t-1\t1\tALLGATHER\t64\t1\tNONE\t0\t1\tNONE\t0\t100\n"));
}

TEST(SimaiTraining, PipelineBytesAreAFloatWithSequenceParallelism) {
  const std::string flags =
      "--world_size 4 --tp 2 --pp 2 --hidden_size 8 --num_layers 2 --num_attention_heads 2 "
      "--seq_length 4 ";
  EXPECT_THAT(generate(flags), HasSubstr("pp_comm: 64\n"));
  EXPECT_THAT(generate(flags + "--sp"), HasSubstr("pp_comm: 32.0\n"));
}

// There are as many heads as layers, and only layers are cut into heads.
TEST(SimaiTraining, NoLayersNeedNoHeads) {
  const std::string none = "--num_layers 0 --hidden_size 64";
  for (const char* generator : {"simai-training", "megatron", "deepspeed12", "deepspeed3"}) {
    EXPECT_EQ(generate(none, generator), generate(none + " --num_attention_heads 8", generator));
  }
  const std::string text = generate(none);
  EXPECT_THAT(text, HasSubstr("\nembedding_layer\t"));
  EXPECT_THAT(text, HasSubstr("\nembedding_norm\t"));
  EXPECT_THAT(text, HasSubstr("\ncross_entropy1\t"));
  EXPECT_THAT(text, Not(HasSubstr("attention")));
}

TEST(SimaiTraining, WrongJobsNameTheRuleAndWhatWouldWork) {
  EXPECT_THAT(error_of("--world_size 10 --tp 4"), HasSubstr("a multiple of 4: 8 or 12"));
  EXPECT_THAT(error_of("--world_size 6 --tp 3 --hidden_size 4096 --num_attention_heads 32"),
              HasSubstr("a divisor of 4096: 2 or 4"));
  EXPECT_THAT(error_of("--world_size 8 --ep 4 --num_experts 6"), HasSubstr("not divisible by 4"));
  EXPECT_THAT(error_of("--moe_enable"), HasSubstr("--enable_sequence_parallel"));
  EXPECT_THAT(error_of("--world_size 0"), HasSubstr("1 to 1000000000"));
  EXPECT_THAT(error_of("--world_size -4"), HasSubstr("-4 is out of range"));
  EXPECT_THAT(error_of("--hidden_size 1000000000000000000"), HasSubstr("--hidden_size"));
  EXPECT_THAT(error_of("--hidden_size 4000000000000000 --num_attention_heads 1"),
              HasSubstr("range"));
  EXPECT_THAT(error_of("--global_batch 4000000000000"), HasSubstr("rows"));
  EXPECT_THAT(error_of("--aiob_enable"), HasSubstr("--comp_filepath"));
}

}  // namespace
}  // namespace lockstep::generator_simai_test
