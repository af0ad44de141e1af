#pragma once

#include <cstdint>

#include "generator/exact/operators.h"
#include "generator/job.h"

namespace lockstep {

/// Parameters that one rank updates, of those that its stage holds: all, or with sharding its share
/// of dense ones (over dp x cp / hsdp_replicas) and of experts (dense_shards(), expert_shards()).
std::int64_t owned_parameters(const Job& job, const ParameterCount& held);

/// What a rank does with them at the end of a step, each bound by memory, as Megatron-LM does it:
/// it reads their gradients for the norm; Adam reads gradient, fp32 parameter and both moments, and
/// writes the latter three; a pass of its own writes what it has in fewer bits than 32.
Operator gradient_norm(std::int64_t owned, const RankSizes& sizes);
Operator optimizer_update(std::int64_t owned, const RankSizes& sizes);
Operator parameter_copy(std::int64_t owned, const RankSizes& sizes);
/// The buffer of gradients, of all parameters that the rank holds, is set to zero: Megatron-LM does
/// it as the next step begins. Nothing where gradients are cut over ranks: those are freed.
Operator gradient_reset(const Job& job, const ParameterCount& held, const RankSizes& sizes);

}  // namespace lockstep
