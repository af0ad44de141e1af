// Forward passes of a small DeepSeek and a small Qwen, counted by hand.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/generator.h"
#include "generator/inference_model.h"

namespace lockstep::generator_inference_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// 2 tokens hidden = 2 4 16 = 128; combine = 128 x 2 experts / tp 2 = 128; dispatch 128 33/64 = 66.
constexpr const char* kDeepSeek =
    R"({"num_layers": 2, "dense_layer": 1, "hidden_size": 16, "num_attention_heads": 2, "d_q": 4,
        "d_kv": 4, "d_r": 2, "shared_experts": 1, "moe_router_topk": 2, "expert_dim": 8})";
constexpr const char* kQwenNext =
    R"({"num_hidden_layers": 2, "hidden_size": 16, "num_experts_per_tok": 2,
        "full_attention_interval": 2})";

class Inference : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("lockstep-inference-") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "results/aiob_outputs");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  GeneratedWorkload workload(const std::string& generator, const std::string& line) const {
    GenerateRequest request;
    request.folder = folder_.string();
    for (const std::string_view word : split_blanks(line)) {
      request.words.emplace_back(word);
    }
    return generator_named(generator).generate(request);
  }
  std::string error_of(const std::string& line) const {
    try {
      workload("inference", line);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

constexpr const char* kDecode =
    "--phase decode --micro_batch 4 --seq_length 7 --world_size 2 --tp 2";

TEST_F(Inference, DeepSeekDecode) {
  put("c.json", kDeepSeek);
  const GeneratedWorkload one = workload("inference", std::string("DeepSeek c.json ") + kDecode);
  EXPECT_EQ(one.file_name, "DeepSeek-671B-world_size2-tp2-pp1-ep1-bs4-seq7-decode.txt");
  EXPECT_EQ(to_text(one),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 2 "
            "mode: 1 vpp: 1 ga: 1 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n6\n"
            "attention_layer\t-1\t1\tALLREDUCE\t128\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "dense_mlp\t-1\t1\tALLREDUCE\t128\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "attention_layer\t-1\t1\tALLREDUCE\t128\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "shared_experts\t-1\t1\tNONE\t0\t0\tNONE\t0\t0\tNONE\t0\t100\n"
            "moe_route\t-1\t1\tALLTOALL_EP\t66\t1\tNONE\t0\t1\tNONE\t0\t100\n"
            "moe_expert\t-1\t1\tALLTOALL_EP\t128\t1\tNONE\t0\t1\tNONE\t0\t100\n");
}

// What a block's layers do is kept once, whatever their number: 100,000 layers of 1,003 lines take
// the memory of two.
TEST_F(Inference, ManyLayersTakeNoMemory) {
  std::string text = kDeepSeek;
  text.replace(text.find(R"("num_layers": 2)"), 15, R"("num_layers": 100000)");
  text.replace(text.find(R"("shared_experts": 1)"), 19, R"("shared_experts": 1000)");
  put("c.json", text);
  GenerateRequest request;
  request.folder = folder_.string();
  request.words = {"DeepSeek", "c.json"};
  Warnings warnings;
  const InferenceModel model = inference_model(request, warnings);
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].layers, 1);
  EXPECT_EQ(model.blocks[1].layers, 99'999);
  EXPECT_EQ(model.blocks[1].items.size(), 1003U);
}

// The file AIOB leaves is found by its name. moe_route has no time in DeepSeek; the row of a layer
// adds shared experts (mlp, 3 us) and experts (5 us).
TEST_F(Inference, VidurAddsTheTimesOfAKind) {
  put("c.json", kDeepSeek);
  put("results/aiob_outputs/DeepSeek-671B-world_size2-tp2-pp1-ep1-bpg4-seq7-decode.txt",
      "atten_qkv:\n time_gpu_avg: 1.5\natten_flash:\n time_gpu_avg: 2\nmlp_up:\n time_gpu_avg: 3\n"
      "moe_route_gate:\n time_gpu_avg: 9\nmoe_down:\n time_gpu_avg: 5\n");
  const GeneratedWorkload one = workload("vidur", std::string("DeepSeek c.json ") + kDecode);
  EXPECT_EQ(one.file_name, "vidur-DeepSeek-671B-world_size2-tp2-pp1-ep1-bs4-seq7-decode.csv");
  EXPECT_EQ(to_text(one),
            "layer_id\tlayer_name\tcomp_time\tcomm_size\n"
            "0\tattention\t3500\t128\n0\tmlp\t3000\t128\n"
            "1\tattention\t3500\t128\n1\tmoe\t8000\t194\n");
}

TEST_F(Inference, QwenNextAlternatesItsAttention) {
  put("c.json", kQwenNext);
  const std::string text =
      to_text(workload("inference", "Qwen3-Next c.json --phase prefill --seq_length 4"));
  EXPECT_THAT(text, HasSubstr("\n10\nattention_norm\t"));
  EXPECT_LT(text.find("attention_gdn"), text.find("attention_layer"));
}

TEST_F(Inference, MistakesAreNamed) {
  put("c.json", kDeepSeek);
  put("half.json", R"({"hidden_size": 16})");
  EXPECT_THAT(error_of("Llama c.json"), HasSubstr("unknown model 'Llama'"));
  EXPECT_THAT(error_of(""), HasSubstr("no model is named"));
  EXPECT_THAT(error_of("DeepSeek"), HasSubstr("configuration file is missing"));
  EXPECT_THAT(error_of("DeepSeek none.json"), HasSubstr("none.json"));
  EXPECT_THAT(error_of("DeepSeek half.json"), HasSubstr("num_experts_per_tok"));
  EXPECT_THAT(error_of("DeepSeek c.json --world_size 4 --tp 8"), HasSubstr("8 or more"));
  EXPECT_THAT(error_of("DeepSeek c.json --world_size 3 --tp 3"), HasSubstr("a divisor of 16"));
  EXPECT_THAT(error_of("DeepSeek c.json --world_size 0"),
              HasSubstr("--world_size: 0 GPUs are fewer than 1"));
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kDeepSeek;
    return text.replace(text.find(from), from.size(), to);
  };
  put("other.json", with(R"(, "expert_dim": 8)", ""));
  EXPECT_THAT(error_of("DeepSeek other.json"), HasSubstr("the field \"expert_dim\" is missing"));
  put("other.json", with(R"("d_q": 4)", R"("vocab_size": 6, "d_q": 4)"));
  EXPECT_THAT(error_of("DeepSeek other.json --world_size 4 --tp 4"),
              HasSubstr("vocab_size = 6 is not divisible by 4"));
  // What AICB's linears have: a (d_q + d_r), a 2 d_kv, a d_kv; head_num is not read.
  put("other.json", with(R"("d_q": 4)", R"("head_num": 3, "d_q": 5)"));
  EXPECT_THAT(error_of("DeepSeek other.json --world_size 8 --tp 8"),
              HasSubstr("num_attention_heads x (d_q + d_r) = 14 is not divisible by 8"));
  put("other.json", with(R"("d_r": 2)", R"("d_r": 5)"));
  EXPECT_THAT(error_of("DeepSeek other.json --world_size 9 --tp 9"),
              HasSubstr("num_attention_heads x 2 x d_kv = 16 is not divisible by 9"));
  put("other.json", with(R"("d_r": 2)", R"("d_r": 4)"));
  EXPECT_THAT(error_of("DeepSeek other.json --world_size 16 --tp 16"),
              HasSubstr("num_attention_heads x d_kv = 8 is not divisible by 16"));
  put("other.json", with(R"("num_attention_heads": 2)", R"("head_num": 2)"));
  EXPECT_THAT(error_of("DeepSeek other.json"),
              HasSubstr("the field \"num_attention_heads\" is missing"));
  put("other.json", with(R"("hidden_size": 16)", R"("hidden_size": 16.0)"));
  EXPECT_THAT(
      error_of("DeepSeek other.json"),
      HasSubstr("hidden_size: expected a whole number from 0 to 9007199254740992, not 16.0"));
  EXPECT_THAT(error_of("DeepSeek c.json --aiob_enable"), HasSubstr("compute-time file"));
  EXPECT_THAT(error_of("DeepSeek c.json --phase train"), HasSubstr("decode, prefill"));
}

}  // namespace
}  // namespace lockstep::generator_inference_test
