#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/aceso/model.h"
#include "planner/aceso/network.h"

namespace lockstep::aceso {

/// One pipeline stage of a plan: consecutive ops on consecutive GPUs.
struct Stage {
  int gpus = 1;
  std::vector<OpPlace> places;  ///< one an op; tp * dp is the number of GPUs
  std::vector<char> recompute;  ///< one an op: it belongs to a recomputed run
  std::int64_t ops() const { return static_cast<std::int64_t>(places.size()); }
};

/// What Aceso's search yields and its runtime executes.
struct Plan {
  std::int64_t global_batch = 0;
  std::int64_t microbatch = 0;  ///< of the whole pipeline; an op with dp ranks runs microbatch / dp
  std::vector<Stage> stages;
  std::int64_t microbatches() const { return global_batch / microbatch; }
  /// Samples of an iteration: of whole microbatches, as many as every op's ranks share evenly.
  std::int64_t samples() const;
};

/// Reads Aceso's plan file (`*_stages_*.json`). Fields that only its runtime needs may be absent.
/// ERRORS: Error with file and path: lists of unequal length, tp * dp other than the GPUs, counts
/// below 1, another model than `model`.
Plan parse_plan(std::string_view text, const std::string& file, const Model& model);

/// ERRORS: Error if the plan has another number of ops than the model's.
void check_ops(const Plan& plan, const std::string& file, const Model& model,
               std::int64_t model_ops);

/// The file as Aceso writes it; its runtime and its cost model read it.
std::string plan_json(const Plan& plan, const Model& model);

}  // namespace lockstep::aceso
