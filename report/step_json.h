#pragma once

#include <string>

#include "base/json.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"

namespace lockstep {

/// The whole result as a JSON text of schema "lockstep-simulate/1" (docs/formats/simulate-json.md):
/// totals, exposure by group, one object a layer, a job and a link direction that carried something
/// (busiest first). With `topology` the ends of links are named; `more` has further
/// members (memory, sensitivity).
std::string step_json(const StepResult& result, const Topology* topology = nullptr,
                      const Json& more = Json());

}  // namespace lockstep
