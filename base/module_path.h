#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Where a loadable module of ours may lie, those places that have it: the folder of the program,
/// ../lib/lockstep beside that, and where it was built.
std::vector<std::string> module_places(std::string_view name, std::string_view built);

}  // namespace lockstep
