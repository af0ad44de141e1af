#include <algorithm>

#include "planner/aceso/cost.h"

namespace lockstep::aceso {
namespace {

const OpCost& cost_of(const Database& database, std::int64_t op, std::int64_t microbatch,
                      const OpPlace& place) {
  return database.cost(database.ops[static_cast<std::size_t>(op)], microbatch / place.dp, place.tp,
                       place.algorithm);
}

const OpTraits& traits(const Database& database, std::int64_t op) {
  return database.traits[static_cast<std::size_t>(database.ops[static_cast<std::size_t>(op)])];
}

}  // namespace

RecomputeEffect recompute_effect(const Stage& stage, std::int64_t first_op, std::int64_t microbatch,
                                 const Database& database) {
  RecomputeEffect effect;
  double run = 0;
  const auto close = [&] {
    effect.peak_mb = std::max(effect.peak_mb, run);
    run = 0;
  };
  for (std::int64_t i = 0; i + 1 < stage.ops(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (stage.recompute[at] == 0 || stage.recompute[at + 1] == 0) {
      close();
      continue;
    }
    const OpTraits& op = traits(database, first_op + i);
    const bool ends = traits(database, first_op + i + 1).boundary;
    const double activations =
        cost_of(database, first_op + i, microbatch, stage.places[at]).activations_mb *
        op.activation_factor;
    run += activations;
    if (!op.ordinary || !ends) {
      effect.saved_mb += activations;
    }
    if (op.ordinary && (ends || i + 2 == stage.ops())) {
      close();
    }
  }
  return effect;  // a run that is still open is not counted
}

StageMemory stage_memory(const Stage& stage, std::int64_t first_op, std::int64_t behind,
                         std::int64_t microbatch, std::int64_t microbatches,
                         const Database& database, const Model& model, Flavour flavour) {
  StageMemory memory;
  double activations = 0, forward = 0, backward = 0;
  for (std::int64_t i = 0; i < stage.ops(); ++i) {
    const OpCost& cost =
        cost_of(database, first_op + i, microbatch, stage.places[static_cast<std::size_t>(i)]);
    memory.weights_mb += cost.weights_mb;
    activations += cost.activations_mb * traits(database, first_op + i).activation_factor;
    if (i + 1 < stage.ops() || flavour == Flavour::kFixed) {
      forward = std::max(forward, cost.forward_reserved_mb);
      backward = std::max(backward, cost.backward_reserved_mb);
    }
  }
  const double input = cost_of(database, first_op, microbatch, stage.places[0]).input_mb;
  const RecomputeEffect effect = recompute_effect(stage, first_op, microbatch, database);
  const double kept = input + activations - effect.saved_mb;
  if (flavour == Flavour::kFixed) {
    behind = std::min(behind, microbatches - 1);
  }
  const double w = memory.weights_mb;
  memory.reserved_mb = std::max(forward + backward, w);
  memory.total_mb = w * (1 + model.main_params()) + w + w * model.optimizer() +
                    kept * static_cast<double>(behind) + (kept + effect.peak_mb) +
                    memory.reserved_mb;
  return memory;
}

}  // namespace lockstep::aceso
