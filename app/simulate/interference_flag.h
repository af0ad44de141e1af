#pragma once

#include <string>
#include <vector>

#include "simulator/replay/interference.h"
#include "topologies/topology.h"

namespace lockstep {

/// The value of --interference: a share from 0 to 1, or a file of docs/formats/interference.md, of
/// which the products' slowdowns count. Empty: none. Warns where the file was measured on GPUs
/// other than `gpu_type` or, where that is empty, than the cluster has. ERRORS: Error that names
/// the flag or the place in the file.
Interference interference_of_flag(const std::string& value, const std::string& gpu_type,
                                  const Topology* topology, std::vector<std::string>& warnings);

}  // namespace lockstep
