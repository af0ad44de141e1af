#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/collective/collective_options.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/custom/algorithm_file.h"
#include "simulator/collectives/nccl_fabric.h"
#include "simulator/collectives/nccl_time.h"

namespace lockstep {

/// How a collective of one size is carried out.
struct CollectivePlan {
  std::string algorithm, protocol;
  std::int32_t channels = 0;  ///< 0: the algorithm's own number
  /// Builds the schedule, anew each time. Lives as long as the PlanSetting.
  std::function<std::shared_ptr<const Schedule>()> schedule;
  /// Builds what leaves one rank, where the algorithm declares that this tells all
  /// (CollectiveAlgorithm::build_leaving); else empty.
  std::function<Schedule(std::int32_t rank)> leaving;
};

/// Where and what, for all sizes.
struct PlanSetting {
  CommType op = CommType::kNone;
  GroupShape shape;
  NcclFabric fabric;
  std::int32_t ports = 1;             ///< NIC ports of a GPU that its channels take by turns
  std::vector<Bytes> sizes;           ///< of each rank or pair, if --split gives them
  std::optional<UserAlgorithm> user;  ///< of --algorithm-file
  std::optional<NcclRates> rates;     ///< of --preset
};

/// What the flags name, and for the rest what NCCL would choose (nccl_tuner.h); in flavour simai
/// SimAI's algorithms. Channels of NCCL that run the same ring side by side are simulated as one:
/// they share its links. ERRORS: Error for names that do not exist or do not go together, naming
/// the flag.
CollectivePlan plan_collective(const CollectiveOptions& options, const PlanSetting& setting,
                               Bytes bytes);

}  // namespace lockstep
