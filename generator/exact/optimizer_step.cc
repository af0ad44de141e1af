#include "generator/exact/optimizer_step.h"

#include <string>
#include <utility>

namespace lockstep {
namespace {

Operator memory_operator(std::string name, double bytes) {
  Operator op;
  op.name = std::move(name);
  op.bytes = bytes;
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
  return memory_operator("gradient norm", static_cast<double>(owned) * sizes.gradient);
}

Operator optimizer_update(std::int64_t owned, const RankSizes& sizes) {
  return memory_operator("optimizer",
                         static_cast<double>(owned) * (sizes.gradient + 24 + sizes.parameter));
}

}  // namespace lockstep
