#pragma once

#include <span>
#include <string>

#include "generator/exact/memory.h"

namespace lockstep {

/// What to say if a rank needs more memory than its GPU has: by how much, on which stage, and which
/// single changes of the job would bring it down to what fits, or how far the best one does. Empty
/// if all fits. Tried are recomputation, a smaller microbatch, sharding of optimizer state and
/// parameters, twice the tensor, pipeline and context parallelism, and sequence parallelism; a
/// change that breaks a rule of check_job() is left out.
/// ERRORS: an unknown GPU type. O(memory_by_stage()), some ten times.
std::string memory_advice(const Job& job, std::span<const StageMemory> stages);

}  // namespace lockstep
