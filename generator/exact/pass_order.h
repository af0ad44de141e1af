#pragma once

#include <cstdint>
#include <vector>

#include "generator/exact/schedule.h"

namespace lockstep {

/// `ahead` forward passes (or all of them, where there are not as many), then one forward and one
/// backward pass in turn, then the backward passes that are left. Which pass is the k-th forward
/// one: with one chunk, microbatch k; else groups of pp microbatches pass chunk after chunk, and
/// backward the chunks the other way round (Narayanan et al., SC'21, section 2.2, figure 4).
/// `side_by_side`: the two of a turn run beside each other (PipelineSlot::beside_next).
/// PRECONDITION: that of PipelineSchedule::order. O(microbatches vpp).
std::vector<PipelineSlot> one_forward_one_backward(const PipelineShape& shape, std::int64_t ahead,
                                                   bool side_by_side);

}  // namespace lockstep
