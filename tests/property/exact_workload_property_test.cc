#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "generator/exact/exact_workload.h"
#include "generator/exact/memory.h"
#include "generator/exact/schedule.h"
#include "tests/support/exact_models.h"
#include "tests/support/free_network.h"
#include "tests/support/random_job.h"
#include "workloads/validate.h"

namespace lockstep::exact_workload_property_test {
namespace {

using testing::random_job;

Time some_time(const Operator& op) {
  return Time::ps(static_cast<std::int64_t>(op.flops + op.bytes));
}

TEST(ExactWorkloadProperty, RandomJobsAreValidAndRunToTheirEnd) {
  Rng rng(1, "exact workload");
  for (int round = 0; round < 100; ++round) {
    const Job job = random_job(rng);
    const Workload workload = exact_workload(job, some_time);
    ASSERT_NO_THROW(validate(workload)) << round;
    try {
      const StepResult result = testing::simulate_free(workload);
      // Communication is free, so no rank takes less than it computes, and the slowest sets the
      // pace.
      ASSERT_GE(result.total, result.compute) << round;
    } catch (const Error& error) {
      FAIL() << "round " << round << ": " << error.what();
    }
  }
}

TEST(ExactWorkloadProperty, SameJobSameWorkload) {
  Rng rng(2, "exact workload");
  for (int round = 0; round < 20; ++round) {
    const Job job = random_job(rng);
    ASSERT_EQ(exact_workload(job, some_time), exact_workload(job, some_time));
  }
}

/// Stages together hold each parameter once, but for a tied head's copy; more cutting never takes
/// more memory for them.
TEST(ExactWorkloadProperty, CuttingNeverAddsToTheStates) {
  Rng rng(3, "exact workload");
  for (int round = 0; round < 60; ++round) {
    Job job = random_job(rng);
    Bytes before = Bytes(std::numeric_limits<std::int64_t>::max());
    for (const Sharding sharding :
         {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
      job.sharding = sharding;
      const StageMemory memory = memory_by_stage(job).front();
      const Bytes states = memory.weights + memory.gradients + memory.optimizer;
      ASSERT_LE(states, before);
      before = states;
    }
    std::int64_t sum = 0;
    for (const StageMemory& memory : memory_by_stage(job)) {
      sum += (memory.parameters.dense - memory.parameters.replicated) * job.tp +
             memory.parameters.replicated + memory.parameters.expert * job.ep * expert_tp(job);
    }
    Job whole;
    whole.model = job.model;
    const ParameterCount all = memory_by_stage(whole).front().parameters;
    const int copies = pipeline_schedule_named(job.schedule).bidirectional ? 2 : 1;
    ASSERT_EQ(sum, copies * (all.dense + all.expert)) << round;
  }
}

TEST(PipelineScheduleProperty, EveryPassOnceForwardFirst) {
  Rng rng(4, "pipeline schedule");
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    for (int round = 0; round < 100; ++round) {
      PipelineShape shape;
      shape.pp = schedule->bidirectional ? 2 * rng.between(1, 4) : rng.between(1, 6);
      shape.vpp = shape.pp > 1 && !schedule->one_chunk ? rng.between(1, 3) : 1;
      shape.microbatches = shape.vpp > 1 ? shape.pp * rng.between(1, 4) : rng.between(1, 20);
      if (schedule->bidirectional) {
        shape.microbatches = 2 * (shape.pp + rng.between(0, 5));
      }
      ASSERT_NO_THROW(check_shape(*schedule, shape));
      const std::int64_t each_way = shape.microbatches / (schedule->bidirectional ? 2 : 1);
      for (std::int64_t stage = 0; stage < shape.pp; ++stage) {
        // 1 forward, 2 and gradients of the input, 3 and of the weights
        std::map<std::pair<std::int32_t, std::int32_t>, int> passes;
        for (const PipelineSlot& slot : schedule->order(shape, stage)) {
          int& done = passes[{slot.chunk, slot.microbatch}];
          const bool weights = slot.part == BackwardPart::kWeights;
          ASSERT_EQ(done, slot.backward ? (weights ? 2 : 1) : 0) << schedule->name;
          done += slot.backward && slot.part == BackwardPart::kWhole ? 2 : 1;
        }
        ASSERT_EQ(std::ssize(passes), schedule->chunks(shape) * each_way);
        for (const auto& [pass, done] : passes) {
          ASSERT_EQ(done, 3) << schedule->name;
          ASSERT_LT(pass.first, schedule->chunks(shape));
          ASSERT_LT(pass.second, each_way);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::exact_workload_property_test
