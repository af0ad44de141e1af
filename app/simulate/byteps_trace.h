#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/units.h"
#include "topologies/topology.h"
#include "trace/timeline.h"

namespace lockstep {

/// The steps that a BytePS trace holds, from 1; both ends are in it.
struct TracedSteps {
  std::int64_t first = 1, last = 1;
};

/// BYTEPS_TRACE_START_STEP and BYTEPS_TRACE_END_STEP of the environment; where one is missing, the
/// first and the last of `steps`. ERRORS: Error naming the variable that is no step of the run.
TracedSteps traced_steps(std::int64_t steps);

/// Writes FOLDER/<local rank>/comm.json for each GPU of the first server that draws anything
/// (trace/byteps_timeline.h). `run` simulates step 0, 1, … and returns its time.
/// ERRORS: those of `run` and of writing; nothing is written before all steps have run.
void write_byteps_trace(const std::string& folder, TracedSteps steps, const Topology& topology,
                        const std::function<std::pair<Time, Timeline>(std::int64_t)>& run);

}  // namespace lockstep
