#pragma once

#include <string>

#include "generator/exact/families.h"
#include "generator/exact/folded_pass.h"
#include "generator/exact/stage_streams.h"

namespace lockstep {

/// The stream of a stage's program that a transfer within a pass runs on.
StageStream stream_of(const PassComm& transfer);

/// A step of a pass as an operation; what it comes after is left to the caller.
Op op_of(const FoldedStep& step, std::string name, Families& families);

/// Several sets of operations as one, ascending.
std::vector<std::int32_t> joined(std::vector<std::int32_t> a, const std::vector<std::int32_t>& b);

}  // namespace lockstep
