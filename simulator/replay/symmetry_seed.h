#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/schedule.h"
#include "topologies/topology.h"

namespace lockstep {

/// First colours for find_symmetry(), one a slot: where its ends lie, as far as regular fabrics
/// repeat: the place of each GPU in its server and the place of that server among the servers on
/// the same leaf switches. On a ring that runs through segment after segment of such servers these
/// are the classes themselves, and nothing has to be refined. `places` is places_in_fabric().
/// O(slots).
std::vector<std::uint64_t> symmetry_seed(const Schedule& schedule, const std::vector<NodeId>& nodes,
                                         const std::vector<std::uint32_t>& places);

/// For each node its place in its server and its server's place among those on the same leaves, in
/// one number. O(links).
std::vector<std::uint32_t> places_in_fabric(const Topology& topology);

}  // namespace lockstep
