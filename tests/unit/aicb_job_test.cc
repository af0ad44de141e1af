// AICB's training flags as flags of Megatron-LM: the exact step of the same job.
#include "generator/megatron_args/aicb_job.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/model/parameters.h"

namespace lockstep {
namespace {

AicbJob job_of(std::string_view generator, std::string_view words) {
  GenerateRequest request;
  for (const std::string_view word : split_blanks(words)) {
    request.words.emplace_back(word);
  }
  return aicb_job(generator_named(generator), request);
}

std::int64_t value(const AicbJob& job, std::string_view flag) {
  return job.launch.whole(flag, 0).value_or(-1);
}

TEST(AicbJob, GptOfAPreset) {
  const AicbJob job =
      job_of("simai-training", "--model gpt-13b --world_size 64 --tp 4 --pp 2 --sp");
  EXPECT_EQ(value(job, "num-layers"), 40);
  EXPECT_EQ(value(job, "hidden-size"), 5120);
  EXPECT_EQ(value(job, "ffn-hidden-size"), 4 * 5120);
  EXPECT_EQ(value(job, "tensor-model-parallel-size"), 4);
  EXPECT_EQ(value(job, "pipeline-model-parallel-size"), 2);
  EXPECT_EQ(value(job, "global-batch-size"), 1024);  // the script's, as AICB's presets take it
  EXPECT_TRUE(job.launch.has("sequence-parallel"));
  EXPECT_TRUE(job.launch.has("use-distributed-optimizer"));
  EXPECT_FALSE(job.launch.has("swiglu"));
  EXPECT_EQ(job.words, (std::vector<std::string>{"--gpus", "64"}));
  EXPECT_EQ(job.name, "gpt_13B");
  // By hand, tied embedding and no biases: (50257 + 4096) h + 40 (12 h^2 + 2 norms of 2 h) + 2 h.
  const std::int64_t h = 5120;
  const Model model = megatron_model(job.launch, {});
  EXPECT_EQ(model_parameters(model).total, (50257 + 4096) * h + 40 * (12 * h * h + 4 * h) + 2 * h);
}

TEST(AicbJob, LlamaOfDeepSpeed) {
  const AicbJob job =
      job_of("deepspeed3", "--model llama-7b --world_size 8 --gbs 32 --gpu_type A100");
  EXPECT_EQ(job.launch.text("data-parallel-sharding-strategy"), "optim_grads_params");
  EXPECT_TRUE(job.launch.has("overlap-grad-reduce"));
  EXPECT_EQ(job.words, (std::vector<std::string>{"--gpus", "8", "--gpu-type", "A100"}));
  // AICB's vocabulary is 32000: the published 6,738,415,616 parameters.
  EXPECT_EQ(model_parameters(megatron_model(job.launch, {})).total, 6'738'415'616);
  EXPECT_EQ(job.warnings.entries().size(), 1U);  // ten steps are asked for by the script's defaults
  EXPECT_EQ(value(job_of("deepspeed12", "--stage 1 --reduce_bucket_size 1000"), "ddp-bucket-size"),
            1000);
}

TEST(AicbJob, ExpertsOfDeepSeek) {
  const AicbJob job = job_of("megatron",
                             "--frame DeepSeek --moe --sp --world_size 16 --tp 2 --ep 4 "
                             "--num_experts 8 --topk 2 --num_layers 5 --n_dense_layers 2 "
                             "--n_shared_expert 3 --num_attention_heads 16 --ffn_hidden_size 512");
  EXPECT_EQ(job.launch.joined("moe-layer-freq"), "([0]*2+[1]*3)");
  EXPECT_EQ(value(job, "expert-model-parallel-size"), 4);
  EXPECT_EQ(value(job, "moe-shared-expert-intermediate-size"), 3 * 512);
  EXPECT_EQ(value(job, "kv-lora-rank"), 512);
  const Model model = megatron_model(job.launch, {});
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].layers, 2);
  EXPECT_EQ(model.blocks[1].layers, 3);
}

TEST(AicbJob, FlagsThatAicbDoesNotHaveAreOurs) {
  const AicbJob job = job_of(
      "megatron", "--world_size 4 --pp 2 --schedule gpipe --gbs 8 --precision=fp16 --seq_len 512");
  EXPECT_EQ(job.words,
            (std::vector<std::string>{"--gpus", "4", "--schedule", "gpipe", "--precision=fp16"}));
  EXPECT_EQ(value(job, "seq-length"), 512);
  EXPECT_EQ(value(job, "context-parallel-size"), 1);
}

TEST(AicbJob, NoTrainingStep) {
  EXPECT_THROW(job_of("collective", ""), Error);
  EXPECT_THROW(job_of("inference", "DeepSeek"), Error);
  EXPECT_THROW(job_of("megatron", "--frame collective_test"), Error);
  EXPECT_THROW(job_of("megatron", "--world_size 12 --tp 8"), Error);
}

}  // namespace
}  // namespace lockstep
