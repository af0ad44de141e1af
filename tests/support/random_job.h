#pragma once

#include <initializer_list>
#include <numeric>

#include "base/rng.h"
#include "generator/exact/schedule.h"
#include "generator/job.h"
#include "tests/support/exact_models.h"

namespace lockstep::testing {

template <class T>
T pick(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

/// A random job that keeps all rules, of at most 64 ranks.
inline Job random_job(Rng& rng) {
  Job job;
  job.tp = pick<std::int64_t>(rng, {1, 2, 4});
  job.cp = pick<std::int64_t>(rng, {1, 1, 2});
  job.pp = pick<std::int64_t>(rng, {1, 2, 3, 4});
  job.vpp = job.pp > 1 ? rng.between(1, 3) : 1;
  const std::int64_t dp = pick<std::int64_t>(rng, {1, 2});
  job.gpus = job.tp * job.cp * job.pp * dp;
  job.sequence_parallel = rng.below(2) == 0;
  const bool moe = job.tp == 1 || job.sequence_parallel ? rng.below(2) == 0 : false;
  if (moe) {
    job.ep = pick<std::int64_t>(rng, {1, 2, 4});
    job.expert_tp = pick<std::int64_t>(rng, {0, 1, 2});
    const std::int64_t etp = job.expert_tp > 0 ? job.expert_tp : job.tp;
    const std::int64_t stage = job.tp * job.cp * dp;
    const std::int64_t unit = std::lcm(stage, job.ep * etp);
    job.gpus = unit * job.pp;
  }
  const auto kv_heads = pick<std::int64_t>(rng, {2, 8});
  job.model = llama(rng.between(job.pp * job.vpp, 14), 64, 8, kv_heads, 128, 256, moe ? 8 : 0);
  job.seq = 64;
  job.micro_batch = rng.between(1, 2);
  job.global_batch =
      job.micro_batch * job.dp() * (job.vpp > 1 ? job.pp * rng.between(1, 2) : rng.between(1, 6));
  job.recompute = pick(rng, {Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  job.precision =
      pick(rng, {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8});
  job.fp8_recipe = pick(
      rng, {Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise, Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8});
  job.sharding = pick(rng, {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
  job.context_comm =
      pick(rng, {ContextComm::kRing, ContextComm::kAllGather, ContextComm::kAllToAll});
  if (kv_heads / job.tp < job.cp && job.context_comm == ContextComm::kAllToAll) {
    job.context_comm = ContextComm::kRing;  // which cuts no heads
  }
  job.gradient_bucket = pick<std::int64_t>(rng, {0, 1, 20'000});
  job.overlap_gradients = rng.below(2) == 0;
  job.overlap_parameters = rng.below(2) == 0;
  const PipelineSchedule& schedule = *pipeline_schedules()[rng.below(pipeline_schedules().size())];
  if (schedule.bidirectional && job.pp % 2 == 0) {
    job.global_batch = job.micro_batch * job.dp() * 2 * (job.pp + rng.between(0, 2));
  }
  job.vpp = schedule.one_chunk ? 1 : job.vpp;
  job.schedule = schedule.bidirectional && job.pp % 2 != 0 ? "1f1b" : schedule.name;
  if (job.sequence_parallel) {
    job.product_overlap = {rng.below(2) == 0, rng.below(2) == 0, rng.below(2) == 0};
  }
  return job;
}

}  // namespace lockstep::testing
