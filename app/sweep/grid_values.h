#pragma once

#include <cstdint>
#include <functional>
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
/// `room` is told how many there are before any is made, and throws where they are too many.
/// ERRORS: another form; a range without end, or with two units; more than 10^6 values; room's.
std::vector<FlagValue> grid_values(const YAML::Node& node, const std::string& file,
                                   const std::string& field,
                                   const std::function<void(std::int64_t)>& room);

}  // namespace lockstep
