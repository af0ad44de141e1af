#pragma once

#include "base/json.h"
#include "simulator/replay/step_detail.h"

namespace lockstep {

/// A step's operations as "detail" of docs/formats/simulate-json.md.
Json detail_json(const StepDetail& detail);

}  // namespace lockstep
