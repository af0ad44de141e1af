#pragma once

#include <optional>
#include <string>

#include "topologies/topology.h"

namespace lockstep {

/// Every link with the nodes it joins, by number: what a straggler's SPEC names (link:3-21:0.5).
/// Only those at `node`, where it is given. O(nodes + links).
/// ERRORS: Error where there is no such node.
std::string links_text(const Topology& topology, std::optional<std::int64_t> node);
/// Schema "lockstep-topology-links/1".
std::string links_json(const Topology& topology, std::optional<std::int64_t> node);

}  // namespace lockstep
