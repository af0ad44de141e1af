#include "generator/exact/optimizer_step.h"

#include <string>
#include <utility>

namespace lockstep {
namespace {

Operator memory_operator(std::string name, double bytes, MemoryWork work) {
  Operator op;
  op.name = std::move(name);
  op.bytes = bytes;
  op.memory_work = work;
  op.element_bytes = 4;
  return op;
}

}  // namespace

std::int64_t owned_parameters(const Job& job, const ParameterCount& held) {
  if (job.sharding == Sharding::kNone) {
    return held.dense + held.expert;
  }
  return held.dense / dense_shards(job) + held.expert / expert_shards(job);
}

Operator gradient_norm(std::int64_t owned, const RankSizes& sizes) {
  return memory_operator("gradient norm", static_cast<double>(owned) * sizes.gradient,
                         MemoryWork::kOneWay);
}

Operator optimizer_update(std::int64_t owned, const RankSizes& sizes) {
  return memory_operator("optimizer", static_cast<double>(owned) * (sizes.gradient + 24),
                         MemoryWork::kUpdate);
}

Operator parameter_copy(std::int64_t owned, const RankSizes& sizes) {
  const double each = sizes.parameter < 4 ? 4 + sizes.parameter : 0;
  return memory_operator("parameter copy", static_cast<double>(owned) * each, MemoryWork::kUpdate);
}

Operator gradient_reset(const Job& job, const ParameterCount& held, const RankSizes& sizes) {
  const auto kept = [&](std::int64_t parameters, std::int64_t shards) {
    return job.sharding < Sharding::kZero2 || shards == 1 ? parameters : 0;
  };
  const std::int64_t reset =
      kept(held.dense, dense_shards(job)) + kept(held.expert, expert_shards(job));
  return memory_operator("gradient reset", static_cast<double>(reset) * sizes.gradient,
                         MemoryWork::kOneWay);
}

}  // namespace lockstep
