#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/collectives/nccl_time.h"
#include "trace/physical_log.h"

namespace lockstep::compare {

/// Which ways NCCL's environment leaves for an operation: bits by NcclAlgorithm and Protocol.
struct NcclWays {
  std::uint32_t algorithms = ~0U, protocols = ~0U;
  bool all() const { return algorithms == ~0U && protocols == ~0U; }
};

/// NCCL_ALGO and NCCL_PROTO: names, lists, exclusions ("^NVLS,NVLSTree"), and lists by operation
/// ("allreduce:tree,ring;broadcast:ring"). Names that are none are left out; a list of none of them
/// leaves everything.
NcclWays nccl_ways(const CommSetting& setting, CommType op);

/// The task with NCCL's choice among the ways that are left made (its wishes name one algorithm and
/// protocol); as it was where all are left, or none that can do the operation.
NcclTask within(const NcclTask& task, const NcclWays& ways, const NcclSystem& system);

/// What of a log's environment and NCCL's own words the model leaves out, in words.
std::vector<std::string> unmodelled_settings(const CommSetting& setting);

}  // namespace lockstep::compare
