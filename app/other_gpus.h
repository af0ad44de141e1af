#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "generator/job.h"
#include "topologies/topology.h"

namespace lockstep {

/// Of the first so many GPUs.
std::set<std::string> gpu_types_of(const Topology& topology, std::int64_t gpus);

/// Where a job's GPUs are not all what its times are of, says so: which they are, and what they are
/// taken for. Otherwise empty.
std::string other_gpus(const Topology& topology, const Job& job);

}  // namespace lockstep
