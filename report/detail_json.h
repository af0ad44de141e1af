#pragma once

#include "base/json.h"
#include "simulator/replay/step_detail.h"
#include "simulator/replay/step_result.h"

namespace lockstep {

/// A step's operations as "detail" of docs/formats/simulate-json.md; `jobs` are those of the step.
Json detail_json(const StepDetail& detail, const std::vector<JobResult>& jobs);

}  // namespace lockstep
