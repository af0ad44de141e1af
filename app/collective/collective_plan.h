#pragma once

#include <memory>
#include <string>

#include "app/collective/collective_options.h"
#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// How a collective of one size is carried out.
struct CollectivePlan {
  std::string algorithm, protocol;
  std::int32_t channels = 0;  ///< 0: the algorithm's own number
  Time launch;                ///< before the first transfer, once
  std::shared_ptr<const Schedule> schedule;
};

/// What the flags name, and for the rest what NCCL would choose. ERRORS: Error for names that do
/// not exist or do not go together, naming the flag.
CollectivePlan plan_collective(const CollectiveOptions& options, CommType op, Bytes bytes,
                               const GroupShape& shape);

}  // namespace lockstep
