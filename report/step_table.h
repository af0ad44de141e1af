#pragma once

#include <string>
#include <string_view>

#include "simulator/replay/step_result.h"
#include "topologies/topology.h"

namespace lockstep {

/// One step at a glance, for the terminal: where the time goes, by kind of communication, the ten
/// most expensive names of layers, the jobs if there are several, and, if the result knows its
/// ports, the ten busiest links. With `topology` their ends are named. `job`: lines that describe
/// the job, in place of the degrees that the result has of it.
///
/// Plain ASCII apart from what names contain; no line longer than `width` characters (at least 60).
std::string step_table(const StepResult& result, const Topology* topology = nullptr,
                       std::size_t width = 80, std::string_view job = {});

}  // namespace lockstep
