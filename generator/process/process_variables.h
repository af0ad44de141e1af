#pragma once

#include <cstdint>

#include "generator/exact/schedule.h"
#include "generator/exact/stage_plan.h"
#include "generator/model/expression.h"

namespace lockstep {

/// What the expressions of a process may name at a place of a job; docs/formats/process.md lists
/// them. Numbers of parameters and bytes are those of one rank.
///
/// Stage: the model's variables, the job's degrees and batch, `stage`, `first_stage`, `last_stage`,
/// `parameters` and its parts, bytes of an element, rows of tokens.
/// ERRORS: Error naming a variable of the model that has the name of one of these.
Variables stage_variables(const Job& job, const StagePlan& plan, std::int64_t stage);

/// Adds what is known within a pass: `microbatch`, `chunk`, their ends, the neighbours and what
/// they exchange.
void add_slot_variables(Variables& variables, const Job& job, const StagePlan& plan,
                        std::int64_t stage, const PipelineSlot& slot);

/// Adds a unit's: its place in the model, its parameters, and those of the gradient bucket it
/// completes in a backward pass (0: none).
struct UnitBuckets {
  std::int64_t dense = 0, expert = 0;
};
void add_unit_variables(Variables& variables, const PlacedUnit& unit, const UnitBuckets& buckets);

/// For each unit of a chunk, in forward order: the parameters of the gradient buckets that it
/// completes when the units' gradients become ready from the last to the first (exact/buckets.h).
/// `first`: is_first_chunk().
std::vector<UnitBuckets> buckets_of(const std::vector<PlacedUnit>& units, const Job& job,
                                    bool first);

}  // namespace lockstep
