#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "trace/physical_log.h"

namespace lockstep::compare {

enum class FindingKind {
  kSlowNode,
  kSlowPair,
  kSlowRun,
  kTcpFallback,
  kGdrOff,
  kFewNics,
  kNicError,
  kWrongResults
};
std::string_view name_of(FindingKind kind);  ///< "slow-node", "slow-pair", …

/// Like tests, before one of them can stand out.
inline constexpr std::size_t kFewestLikeTests = 4;

/// Sizes of a test: all, or those whose usual bandwidth is at least half of the most and whose time
/// is at least twice the latency.
enum class SizeKind { kAll, kBandwidthBound };
std::string_view name_of(SizeKind kind);  ///< "all", "bandwidth-bound"

/// Something that is not as it should be, and how that is known.
struct Finding {
  FindingKind kind = FindingKind::kSlowRun;
  std::string subject;  ///< a host, two hosts "a b", or the id of a table
  double slowdown = 1;  ///< time, of what like tests take
  std::string evidence;
};

/// One table of a log among those like it.
struct TestHealth {
  std::string id;
  std::vector<std::string> hosts;
  bool judged = false;  ///< there are enough like tests of its sizes
  double slowdown = 1;  ///< usual bandwidth / its own, mean over `sizes`, of the median of this
  SizeKind sizes = SizeKind::kAll;
  bool slow = false;
};

struct Health {
  std::vector<Finding> findings;  ///< the worst first within a kind, nodes before pairs
  std::vector<TestHealth> tests;  ///< in order of the logs
  std::size_t groups = 0;         ///< sets of like tests
  std::size_t not_judged = 0;     ///< tests of which fewer than kFewestLikeTests are alike
  /// Sets of which a fifth and more are above 1.2 times as fast as the median: hosts of a slow
  /// majority cannot be told from those of a usual one.
  std::vector<std::string> warnings;
};

/// Looks for what is slow among tests that should be alike: those of the same operation, GPUs and
/// servers, GPU type and NCCL release on the same cluster (hosts that were tested together, or
/// whose names differ by numbers alone). Sizes that four and more of them have are judged, all
/// together and those that bandwidth bounds, which the many small ones of a usual sweep would hide.
/// A test is slow above 1.2 times the median of either. A host is slow if most of its tests in a
/// group are, and the fewest such hosts that explain the slow tests are named; slow pairs of hosts
/// that are well otherwise point to what lies between them. Hosts come from the devices that a log
/// lists, else from the table's id ("…-g1-node7_node9", "…_node7").
///
/// What logs tell by themselves: TCP where there are NICs, GPU Direct off, fewer NICs than GPUs
/// need or than like tests see, what NCCL warns of its NICs, wrong results; of a host where most of
/// its tests say so. Slow tests that tell why (all but wrong results) are no evidence against hosts
/// or cables. O(rows log rows + hosts^2).
Health check_health(const std::vector<PhysicalLog>& logs);

std::string health_table(const Health& health);
std::string health_json(const Health& health);  ///< "lockstep-health/1"

}  // namespace lockstep::compare
