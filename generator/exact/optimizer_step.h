#pragma once

#include <cstdint>

#include "generator/exact/operators.h"
#include "generator/job.h"

namespace lockstep {

/// Parameters that one rank updates, of those that its stage holds: all, or with sharding its share
/// of dense ones (over dp x cp / hsdp_replicas) and of experts (dense_shards(), expert_shards()).
std::int64_t owned_parameters(const Job& job, const ParameterCount& held);

/// What a rank does with them at the end of a step, bound by memory: it reads their gradients for
/// the norm; then Adam reads gradient, fp32 parameter and both moments, and writes the latter three
/// and the parameter.
Operator gradient_norm(std::int64_t owned, const RankSizes& sizes);
Operator optimizer_update(std::int64_t owned, const RankSizes& sizes);

}  // namespace lockstep
