#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/collectives/schedule.h"

namespace lockstep {

/// Where the ranks of a group sit, for algorithms that care.
struct GroupShape {
  std::int32_t ranks = 0;
  /// Server of each rank, numbered from 0 in order of first appearance. One entry a rank.
  std::vector<std::int32_t> server;
};

struct CollectiveRequest {
  CommType op = CommType::kNone;
  Bytes bytes;                ///< the full tensor, as in LayerPhase::bytes
  std::int32_t channels = 0;  ///< 0: the algorithm's own choice
};

/// A way to carry out collectives: one file in simulator/collectives/algorithms.
struct CollectiveAlgorithm {
  std::string_view name;     ///< "ring"
  std::string_view summary;  ///< one line
  std::span<const CommType> ops;
  /// Builds the DAG. Every group of equal shape gets the same one. PRECONDITION: op is in `ops`,
  /// shape.ranks >= 2, bytes >= 0.
  Schedule (*build)(const CollectiveRequest& request, const GroupShape& shape);
};

/// All algorithms, by file name.
std::span<const CollectiveAlgorithm* const> collective_algorithms();

}  // namespace lockstep
