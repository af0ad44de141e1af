#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/replay/straggler.h"

namespace lockstep {

/// What goes wrong in a step, and who else is there.
struct Scenario {
  std::vector<Straggler> stragglers;
  std::vector<std::string> beside;  ///< files of further workloads, as --beside has them
};

/// A scenario file (docs/stragglers.md); either list may be left out:
///
///     stragglers:
///       - gpu:3:1.5
///       - {model: link, nodes: 12-40, share: 0.5, from: 10ms, until: 20ms}
///     beside:
///       - other-job.txt
///
/// ERRORS: Error with file, line and field.
Scenario parse_scenario(std::string_view text, const std::string& file);

}  // namespace lockstep
