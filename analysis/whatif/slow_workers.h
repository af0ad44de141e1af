#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/whatif/peers.h"
#include "analysis/whatif/remedies.h"
#include "analysis/whatif/sequence_length.h"

namespace lockstep::whatif {

/// What a mended worker or transfer must save of step time to be named.
inline constexpr double kWorthNaming = 0.01;

/// Workers that compute longer than their peers, and what replacing them brings.
struct SlowWorkers {
  /// The worst one, or several: then each costs something where all others are replaced, and who
  /// costs most comes first. Empty if none stands apart.
  std::vector<std::size_t> workers;
  std::optional<Remedy> first;  ///< replaced alone
  /// Of several: all of them; and of each what it costs alone, as a share of the step time.
  std::optional<Remedy> together;
  std::vector<double> alone;

  bool worth_naming() const { return together || (first && first->saves >= kWorthNaming); }
};

/// Two equally slow workers wait for each other, so that replacing one saves nothing: all that
/// stand apart from their peers (at most eight) are replaced, then those put back that make no
/// difference. At most three simulations where one stands apart, some twenty where eight do.
SlowWorkers find_slow_workers(const Scene& scene, const ComputeExcess& compute,
                              const SequenceLengthSign& lengths);

}  // namespace lockstep::whatif
