#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// What the step would take with one thing a tenth better: its speed 1.1 times, its latency
/// a 1.1th.
struct Sensitivity {
  std::string what;  ///< "leaf to spine bandwidth", "backward-compute", "allreduce over dp"
  Time total;        ///< of the step then
};

/// Paired runs, one for each tier of links (bandwidth, latency), each type of computation and each
/// collective and group that the workload has. A collective's efficiency is changed by its bytes.
/// `threads` at once, 0: one a core; the result does not depend on it.
std::vector<Sensitivity> sensitivities(
    const Workload& workload, const Topology& topology, int threads,
    const std::function<Time(const Workload&, const Topology&)>& run);

/// A table, the most rewarding first, and its JSON; `base` is the step as it is.
std::string sensitivity_text(std::vector<Sensitivity> all, Time base);
Json sensitivity_json(const std::vector<Sensitivity>& all, Time base);

}  // namespace lockstep
