#pragma once

#include <string>

#include "topologies/topology.h"

namespace lockstep {

/// The topology as an SVG picture whose size does not grow with the cluster: tiers are rows, and of
/// parts that are alike (fold.h) one is drawn, with how many there are ("server x 512"); of two,
/// both. Long rows of switches show their ends. Between the rows stand the numbers and rates of all
/// links of the part, drawn or not. Well-formed XML; names are escaped.
/// PRECONDITION: validate(topology) passes.
std::string draw(const Topology& topology);

}  // namespace lockstep
