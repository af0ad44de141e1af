#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/replay/straggler.h"

namespace lockstep {

/// The stragglers of a scenario file (docs/stragglers.md):
///
///     stragglers:
///       - gpu:3:1.5
///       - {model: link, nodes: 12-40, share: 0.5, from: 10ms, until: 20ms}
///
/// ERRORS: Error with file, line and field.
std::vector<Straggler> parse_scenario(std::string_view text, const std::string& file);

}  // namespace lockstep
