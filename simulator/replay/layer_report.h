#pragma once

#include <optional>
#include <span>

#include "simulator/replay/replay.h"
#include "simulator/replay/simai_program.h"
#include "simulator/replay/step_result.h"

namespace lockstep {

/// Fills StepResult::names and ::layers from what rank 0 did. A communication that is awaited is
/// exposed from its issue to its end, and further runs of a forward count with the first; a weight
/// gradient's is only as far as it outlasts the last compute: in the order of their ends each is
/// charged with what it adds. With `simai`, the header's degrees and all_gpus, as SimAI has it:
/// only the first layer's is charged, with all of that, and groups are as large as
/// simai_group_size().
void report_layers(const LayerTable& table, std::span<const LayerOps> ops, const Program& program,
                   std::span<const CommFamily> families, std::span<const OpTiming> timing,
                   const std::optional<Parallelism>& simai, StepResult& result);

/// The pipeline bubble of SimAI's formula, from the layers of `result` and its parallelism.
Time pipeline_bubble(const StepResult& result);

}  // namespace lockstep
