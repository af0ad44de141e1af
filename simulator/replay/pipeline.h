#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/workload.h"

namespace lockstep {

/// Makes a layer table's ga and vpp fit for formulas (flavour default): at least one micro-batch
/// and one model chunk a stage, and `chunks_per_stage` in place of vpp if it is given. Warns where
/// ga is 0, and of a vpp that is probably what AICB writes there, the layers per stage.
void settle_pipeline(Parallelism& parallel, std::optional<std::int64_t> chunks_per_stage,
                     std::vector<std::string>& warnings);

}  // namespace lockstep
