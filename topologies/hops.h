#pragma once

#include <cstdint>
#include <vector>

#include "topologies/topology.h"

namespace lockstep {

/// How far GPUs are from each other, in links, by Router's rule: a direct link, else NVSwitches
/// inside a server, else the shortest path over switches.
struct HopCounts {
  std::vector<double> pairs;  ///< pairs[h]: unordered GPU pairs h links apart
  double mean = 0;
  std::int32_t diameter = 0;
  /// The counts are of all pairs that start at every k-th group of GPUs, scaled up.
  bool sampled = false;
};

/// GPUs that hang on the same switches are as far from everyone, so that one search over the
/// switches serves them all: O(groups * switch links), never GPUs squared. Beyond `most_steps`
/// elementary steps the groups are sampled, evenly in id order.
/// PRECONDITION: validate(topology) passes.
HopCounts count_hops(const Topology& topology, std::int64_t most_steps = 500'000'000);

}  // namespace lockstep
