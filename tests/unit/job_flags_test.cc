#include "generator/exact/job_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep::job_flags_test {
namespace {

using ::testing::HasSubstr;

Job job_of(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : split_blanks(line)) {
    words.emplace_back(word);
  }
  return job_from_flags(parse_args({job_flags()}, words));
}

std::string error_of(std::string_view line) {
  try {
    job_of(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JobFlags, DefaultsAreThoseOfAJob) {
  const Job job = job_of("--gpus 8");
  const Job plain;
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.tp, 1);
  EXPECT_EQ(job.seq, plain.seq);
  EXPECT_EQ(job.schedule, plain.schedule);
  EXPECT_EQ(job.rank_order, plain.rank_order);
  EXPECT_EQ(job.precision, plain.precision);
  EXPECT_EQ(job.sharding, plain.sharding);
  EXPECT_EQ(job.gpu_type, plain.gpu_type);
  EXPECT_EQ(job.moe_imbalance, plain.moe_imbalance);
  EXPECT_TRUE(job.overlap_gradients && job.overlap_parameters && job.flash_attention);
  EXPECT_EQ(job.global_batch, 8);  // one sequence for each of 8 data-parallel ranks
}

TEST(JobFlags, EveryFlagReachesTheJob) {
  const Job job = job_of(
      "--gpus 256 --tp 4 --cp 2 --pp 4 --vpp 2 --ep 8 --etp 1 --sp --first-stage-layers 3 "
      "--last-stage-layers 5 --rank-order tp-cp-ep-pp-dp --schedule gpipe --seq 8192 --mbs 2 --gbs "
      "64 --precision fp8 --recompute full --no-flash-attention --dropout --context-comm a2a "
      "--zero 3 --hsdp-replicas 2 --gradient-bucket 1000 --no-overlap-gradients "
      "--no-overlap-parameters --moe-capacity 1.25 --moe-imbalance 1.5 --gpu-type B200 --ep 8");
  EXPECT_EQ(job.tp * 1000 + job.cp * 100 + job.pp * 10 + job.vpp, 4242);
  EXPECT_EQ(job.ep, 8);
  EXPECT_EQ(job.expert_tp, 1);
  EXPECT_TRUE(job.sequence_parallel && job.dropout);
  EXPECT_FALSE(job.flash_attention || job.overlap_gradients || job.overlap_parameters);
  EXPECT_EQ(job.first_stage_layers, 3);
  EXPECT_EQ(job.last_stage_layers, 5);
  EXPECT_EQ(job.rank_order, "tp-cp-ep-pp-dp");
  EXPECT_EQ(job.schedule, "gpipe");
  EXPECT_EQ(job.seq, 8192);
  EXPECT_EQ(job.micro_batch, 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.precision, Precision::kFp8);
  EXPECT_EQ(job.recompute, Recompute::kFull);
  EXPECT_EQ(job.context_comm, ContextComm::kAllToAll);
  EXPECT_EQ(job.sharding, Sharding::kZero3);
  EXPECT_EQ(job.hsdp_replicas, 2);
  EXPECT_EQ(job.gradient_bucket, 1000);
  EXPECT_EQ(job.moe_capacity, 1.25);
  EXPECT_EQ(job.moe_imbalance, 1.5);
  EXPECT_EQ(job.gpu_type, "B200");
}

TEST(JobFlags, MegatronsSpellings) {
  const Job job = job_of(
      "--world-size 64 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 "
      "--micro-batch-size 2 --global-batch-size 32 --sequence-parallel --seq-length 2048 "
      "--use-distributed-optimizer");
  EXPECT_EQ(job.dp(), 4);
  EXPECT_EQ(job.microbatches(), 4);
  EXPECT_EQ(job.sharding, Sharding::kZero1);
}

TEST(JobFlags, BadFlagsAreNamed) {
  EXPECT_THAT(error_of("--tp 2"), HasSubstr("--gpus: the number of GPUs is missing"));
  EXPECT_THAT(error_of("--gpus 8 --tp 3"), HasSubstr("does not divide 8 GPUs"));
  EXPECT_THAT(error_of("--gpus 8 --tp 0"), HasSubstr("tp"));
  EXPECT_THAT(error_of("--gpus 8 --zero 4"), HasSubstr("zero"));
  EXPECT_THAT(error_of("--gpus 8 --zero 2 --use-distributed-optimizer"), HasSubstr("is ZeRO-1"));
  EXPECT_THAT(error_of("--gpus 8 --precision int4"), HasSubstr("precision"));
  EXPECT_THAT(error_of("--gpus 8 --moe-capacity much"), HasSubstr("'much' is not a number"));
  EXPECT_THAT(error_of("--gpus 8 --moe-imbalance nan"), HasSubstr("'nan' is not a number"));
  EXPECT_THAT(error_of("--gpus 16777216 --mbs 1099511627776"), HasSubstr("--mbs"));
  EXPECT_THAT(error_of("--gpus 99999999999999999999"), HasSubstr("gpus"));
}

}  // namespace
}  // namespace lockstep::job_flags_test
