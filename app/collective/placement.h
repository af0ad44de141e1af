#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace lockstep {

/// The GPU of each of `ranks` ranks (0: as many as the topology and the placement have):
///   first       0, 1, 2, …
///   spread      the first GPU of every server in turn, then the second of every server, …
///   stride:K    0, K, 2K, …
///   random      any, by `seed`
///   0-3,8,9     these; --gpus then takes the first of them
/// ERRORS: Error (field --placement or --gpus) for another word, a GPU that is not there or stands
/// twice, and too few GPUs; at least two ranks.
std::vector<NodeId> place_ranks(const Topology& topology, std::string_view placement,
                                std::int64_t ranks, std::uint64_t seed);

}  // namespace lockstep
