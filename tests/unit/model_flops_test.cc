#include "generator/exact/model_flops.h"

#include <gtest/gtest.h>

#include "tests/support/exact_models.h"

namespace lockstep::model_flops_test {
namespace {

// GPT with L layers of width h, sequences of s tokens, a vocabulary V (Narayanan et al. 2021,
// section 5.1, without what is computed again and with causal attention's half left out):
//   forward of a token   L (24 h^2 + 2 s h) + 2 h V
//   of a step            3 x that x s x batch
// h = 64, s = 128, L = 3, V = 512, 16 sequences.
TEST(ModelFlops, AreThoseOfTheFormula) {
  Job job;
  job.model = testing::gpt(3, 64, 4, 512, 128);
  job.seq = 128;
  job.global_batch = 16;
  const double token = 3 * (24.0 * 64 * 64 + 2.0 * 128 * 64) + 2.0 * 64 * 512;
  EXPECT_DOUBLE_EQ(model_flops(job), 3 * token * 128 * 16);
}

// However the job is cut, and whatever it computes again, the model needs the same.
TEST(ModelFlops, DoNotDependOnTheCut) {
  Job job;
  job.model = testing::llama(4, 256, 8, 2, 512, 1024);
  job.seq = 256;
  job.global_batch = 32;
  const double whole = model_flops(job);
  job.gpus = 32;
  job.tp = 2;
  job.pp = 2;
  job.cp = 2;
  job.micro_batch = 2;
  job.sequence_parallel = true;
  job.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(model_flops(job), whole);
}

// Of eight experts a token meets two: twice one MLP, and the router.
TEST(ModelFlops, CountTheExpertsThatATokenMeets) {
  Job dense, sparse;
  dense.model = testing::llama(1, 256, 8, 2, 512, 1024);
  sparse.model = testing::llama(1, 256, 8, 2, 512, 1024, 8);
  dense.seq = sparse.seq = 256;
  const double mlp = 2.0 * 256 * 3 * 512, router = 2.0 * 256 * 8;
  EXPECT_NEAR(model_flops(sparse) - model_flops(dense), 3 * 256 * (mlp + router),
              1e-6 * model_flops(dense));
}

// Nor is what is not there counted where tokens do not divide evenly over the experts: 2 x 18 rows
// over eight experts are 4.5 each.
TEST(ModelFlops, CountTokensThatDoNotDivideOverTheExperts) {
  Job job;
  job.model = testing::llama(1, 256, 8, 2, 512, 1024, 8);
  job.seq = 18;
  job.global_batch = 8;
  job.micro_batch = 8;
  const double whole = model_flops(job);
  job.micro_batch = 1;
  EXPECT_DOUBLE_EQ(model_flops(job), whole);
}

}  // namespace
}  // namespace lockstep::model_flops_test
