#include "simulator/replay/megatron_pipeline.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/free_network.h"
#include "workloads/validate.h"

namespace lockstep::megatron_pipeline_test {
namespace {

/// pp stages of one layer, forward 1 us, gradients of input and weights 1 us each.
WorkloadJob job_of(std::int64_t pp, std::int64_t ga) {
  LayerTable table;
  table.names = {"grad_norm", "embedding_layer", "attention_layer", "optimizer1"};
  table.pp_comm_bytes = 100;
  const auto layer = [&](std::int32_t name, int us) {
    Layer made;
    made.name = name;
    made.forward.compute = made.input_grad.compute = made.weight_grad.compute = Time::us(us);
    made.weight_grad.group = GroupKind::kDp;
    table.layers.push_back(made);
  };
  layer(0, 0);
  for (std::int64_t i = 0; i < ga; ++i) {
    layer(1, 0);
    layer(2, 1);
  }
  layer(3, 0);
  WorkloadJob job;
  job.parallel = {.gpus = 2 * pp, .tp = 2, .pp = pp, .ga = ga};
  job.work = std::move(table);
  return job;
}

// 1F1B on uniform stages: (ga + pp - 1)(F + B) = 3 (ga + pp - 1) us.
TEST(MegatronPipeline, TakesThePublishedTime) {
  for (const std::int64_t pp : {1, 2, 4}) {
    for (const std::int64_t ga : {1, 4, 9}) {
      Workload workload;
      workload.jobs.push_back(megatron_pipeline(job_of(pp, ga)));
      ASSERT_NO_THROW(validate(workload));
      EXPECT_EQ(testing::simulate_free(workload).total, Time::us(3 * (ga + pp - 1)))
          << pp << " stages, " << ga << " microbatches";
    }
  }
}

TEST(MegatronPipeline, RefusesLayersThatDoNotRepeat) {
  WorkloadJob job = job_of(2, 4);
  auto& table = std::get<LayerTable>(job.work);
  table.layers[4].name = 0;
  EXPECT_THROW(megatron_pipeline(job), Error);
  job = job_of(2, 4);
  job.parallel.ga = 9;
  EXPECT_THROW(megatron_pipeline(job), Error);
  job = job_of(2, 4);
  job.parallel.gpus = 0;
  EXPECT_THROW(megatron_pipeline(job), Error);
}

}  // namespace
}  // namespace lockstep::megatron_pipeline_test
