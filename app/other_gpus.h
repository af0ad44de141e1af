#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "app/generate_exact.h"
#include "generator/job.h"
#include "topologies/topology.h"

namespace lockstep {

/// Of the first so many GPUs, by the names of gpu_specs() where those have them.
std::set<std::string> gpu_types_of(const Topology& topology, std::int64_t gpus);

/// Takes a job's times from the GPUs that a topology has, unless a flag says whose they are, or its
/// GPUs are of several types or of one that has no times.
void take_gpu_type(const Topology& topology, ExactJob& described);

/// Where a job's GPUs are not all what its times are of, says so: which they are, and what they are
/// taken for. Otherwise empty.
std::string other_gpus(const Topology& topology, const Job& job);

/// Where the NVLinks of the topology's first GPU are far from what such GPUs have, says so; as
/// templates do whose GPU type alone was changed. Otherwise empty. O(links).
std::string other_nvlinks(const Topology& topology);

/// Where the topology's first GPU is of no architecture that NCCL's choices are known for (AMD's, a
/// misspelled name), says that Hopper's are taken. Otherwise empty.
std::string taken_for_hopper(const Topology& topology);

}  // namespace lockstep
