#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

/// Lines of a CSV file as maps from the header's names; fields may be quoted.
std::vector<std::map<std::string, std::string>> read_csv(const std::string& path);

}  // namespace lockstep::testing
