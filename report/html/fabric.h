#pragma once

#include "base/json.h"

namespace lockstep {

/// A cluster's links, folded so that a map of them can be drawn whatever its size: nodes of a kind
/// (a tier) in at most 16 groups of neighbours by number, links between two groups as one edge.
/// `links` is that array of docs/formats/simulate-json.md.
///
///     tiers[].kind, .nodes, .groups[].first, .last   from the GPUs upwards; node numbers
///     edges[].from, .to          {tier, group}; both directions together
///     edges[].links, .mean, .max, .carried_bytes     directions of links; utilisation
///     busiest[]                  the 20 busiest directions, as they stand in `links`
///     kinds[].name, .links, .mean, .max, .carried_bytes, .utilisation   "gpu - leaf"; percentiles
///                                0, 10, … 100 of it
///
/// Links without names (no topology at hand) are left out. O(links log links).
Json fabric_of_links(const Json& links);

}  // namespace lockstep
