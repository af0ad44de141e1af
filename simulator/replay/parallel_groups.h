#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/program.h"
#include "workloads/workload.h"

namespace lockstep {

/// The communicators of a SimAI layer table, one family for each kind in the order of GroupKind
/// (families()[static_cast<size_t>(GroupKind::kDp)] …). N GPUs, T = tp, E = ep, P = pp,
/// D = N / (T P); ranks in the order tp, dp, pp (fastest first):
///
///     TP     blocks of T consecutive ranks
///     DP     same place in every TP group of one pipeline stage; D ranks, stride T
///     EP     same place in each of E consecutive TP groups;      E ranks, stride T
///     DP_EP  same place in every E-th TP group;                  D/E ranks, stride T E
///     PP     same place in every stage;                          P ranks, stride N/P
///
/// (SimAI: the same with P = 1.) CP is one rank each, WORLD all ranks.
/// Where E does not divide D but divides T D, experts are spread over the TP ranks too (no expert
/// tensor parallelism): EP is a block of E consecutive ranks, DP_EP strides E.
/// ERRORS: Error when T P does not divide N, or E neither D nor T D, with the nearest E that does.
std::vector<CommFamily> parallel_groups(const Parallelism& parallel);

}  // namespace lockstep
