#pragma once

#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace lockstep {

/// The project's own form, schema "lockstep-topology/1" (docs/formats/topology.md). It holds every
/// Topology exactly: several GPU types, NVLink domains of any size, tiers.
///
/// Nodes are runs of equal ones in id order, links are [a, b, class] rows in link order. Reading
/// takes memory in proportion to the text, whatever counts it claims; the caller validates.
/// ERRORS: Error with the file and the JSON path ("links[3][0]").
Topology parse_topology_json(std::string_view text, const std::string& file);

/// One line for each run, link class and link. parse_topology_json gives the same Topology back.
std::string to_json_text(const Topology& topology);

}  // namespace lockstep
