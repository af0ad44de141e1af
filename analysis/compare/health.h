#pragma once

#include <string>
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
  double slowdown = 1;  ///< usual bandwidth / its own, mean over its sizes
  bool slow = false;
};

struct Health {
  std::vector<Finding> findings;  ///< the worst first within a kind, nodes before pairs
  std::vector<TestHealth> tests;  ///< in order of the logs
  std::size_t groups = 0;         ///< sets of like tests
  /// Sets of which a fifth and more are above 1.2 times as fast as the median: hosts of a slow
  /// majority cannot be told from those of a usual one.
  std::vector<std::string> warnings;
};

/// Looks for what is slow among tests that should be alike: those of the same operation, GPUs and
/// servers, GPU type and NCCL release on the same cluster (hosts' names without their numbers). A
/// test is slow above 1.2 times the median. A host is slow if most of its tests in a group are, and
/// the fewest such hosts that explain the slow tests are named; slow pairs of hosts that are well
/// otherwise point to what lies between them. Hosts come from the devices that a log lists, else
/// from the table's id ("…-g1-node7_node9", "…_node7").
///
/// What logs tell by themselves: TCP where there are NICs, GPU Direct off, fewer NICs than GPUs
/// need or than like tests see, what NCCL warns of its NICs, wrong results; of a host where most of
/// its tests say so. Slow tests that tell why (all but wrong results) are no evidence against hosts
/// or cables. O(rows log rows + hosts^2).
Health check_health(const std::vector<PhysicalLog>& logs);

std::string health_table(const Health& health);
std::string health_json(const Health& health);  ///< "lockstep-health/1"

}  // namespace lockstep::compare
