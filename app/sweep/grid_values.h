#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "app/sweep/grid.h"

namespace lockstep {

/// A value in a grid: a text; true for a bare flag, false or null for none; a list for a flag that
/// is given several times. ERRORS: a mapping; texts with control characters.
FlagValue grid_value(const YAML::Node& node, const std::string& file, const std::string& field);

/// The values of a flag on an axis: a list, a range {from, to, step | steps [, scale: log]} or
/// seeds {seeds: N [, first: 1]}.
/// ERRORS: another form; a range without end, or with two units; more than 10^6 values.
std::vector<FlagValue> grid_values(const YAML::Node& node, const std::string& file,
                                   const std::string& field);

}  // namespace lockstep
