#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

/// What could be done, and the mean step time the simulation then gives.
struct Remedy {
  std::string name;         ///< "replace-worker", "rebalance-stages", …
  std::string description;  ///< in words
  double step_time_s = 0;
  double saves = 0;  ///< 1 - step_time_s / <T>
};

// Each costs one simulation.

/// The worker computes as the median of the others of its stage does, in every operation and step;
/// where there is no other, as the ideal does.
Remedy replace_worker(const Scene& scene, std::size_t worker);
/// Several do, each as the median of those that are none of them.
Remedy replace_workers(const Scene& scene, std::span<const std::size_t> workers);
/// Every stage's forward and backward passes take what they take on average over all stages: layers
/// moved between stages, as if they could be cut anywhere.
Remedy rebalance_stages(const Scene& scene);
/// In each step the microbatches are dealt out anew among the dp_ranks, the longest first, each to
/// the rank with the least work so far that has room: work (as the forward time says) grows with
/// the sum of squared sequence lengths.
Remedy redistribute_sequences(const Scene& scene);
/// What a transfer goes over.
enum class Links {
  kBetweenStages,
  kPeers,     ///< of tensor-, context- and expert-parallel groups
  kReplicas,  ///< of data-parallel groups
};
/// All transfers over those links take half the time.
Remedy faster_links(const Scene& scene, Links links);

}  // namespace lockstep::whatif
