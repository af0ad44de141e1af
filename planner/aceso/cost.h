#pragma once

#include <cstdint>
#include <vector>

#include "planner/aceso/database.h"
#include "planner/aceso/network.h"
#include "planner/aceso/plan.h"

namespace lockstep::aceso {

/// The machines, and what the fixed flavour needs to know beyond the profile.
struct Cluster {
  int nodes = 1;
  int gpus_per_node = 1;
  double memory_limit_mb = 28000;
  double memory_bandwidth_gbps = 900;  ///< GB/s of a GPU's memory; times the optimizer (fixed only)
  int gpus() const { return nodes * gpus_per_node; }
};

/// What one stage costs. Times of one microbatch in us unless they say ms, sizes in MB.
struct StagePrice {
  double forward_us = 0, backward_us = 0, recompute_us = 0;
  double in_us = 0, out_us = 0;  ///< transfers; changes of layout forward and backward in them
  double once_us = 0;            ///< share of what happens once a step (fixed flavour only)
  double time_ms = 0;            ///< the sum of the above: T_s
  double iteration_ms = 0;       ///< T_s * (m - 1) + sum of all T
  double weights_mb = 0;         ///< W
  double memory_mb = 0;          ///< at its peak, reserve included
  double reserved_mb = 0;        ///< the part that the allocator may hold beyond what is used
  double ideal_ms = 0, efficiency_loss_ms = 0;  ///< what the search of Aceso ranks stages by
  double efficient_time_ms = 0;
};

struct PlanPrice {
  double time_ms = 0;    ///< of one iteration: the slowest stage's
  double memory_mb = 0;  ///< of the fullest stage
  double total_gpu_time = 0;
  std::vector<StagePrice> stages;
};

/// Prices a plan; O(ops). The strict flavour is Aceso's cost model with its defects, to the last
/// bit in memory and to rounding in time (source: SuperScaler fa80ad0; docs/planner.md lists the
/// formulas, and what the fixed flavour mends).
PlanPrice price_plan(const Plan& plan, const Database& database, const Model& model,
                     const Cluster& cluster, Flavour flavour);

/// Memory of a stage with `behind` stages after it, in MB. `microbatches` bounds what is in flight
/// in the fixed flavour.
struct StageMemory {
  double weights_mb = 0, total_mb = 0, reserved_mb = 0;
};
StageMemory stage_memory(const Stage& stage, std::int64_t first_op, std::int64_t behind,
                         std::int64_t microbatch, std::int64_t microbatches,
                         const Database& database, const Model& model, Flavour flavour);

/// Fixed flavour, each once a step: a ring all-reduce of gradients over `dp` ranks (bytes as many
/// as the weights', at the p2p table's largest bandwidth), and the optimizer bound by memory
/// bandwidth.
double gradient_us(const Database& database, double weights_mb, int dp, bool crosses);
double optimizer_us(double weights_mb, const Model& model, const Cluster& cluster);

/// What recomputation saves and what its largest run needs.
struct RecomputeEffect {
  double saved_mb = 0, peak_mb = 0;
};
RecomputeEffect recompute_effect(const Stage& stage, std::int64_t first_op, std::int64_t microbatch,
                                 const Database& database);

}  // namespace lockstep::aceso
