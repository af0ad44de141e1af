#pragma once

#include <string>

namespace lockstep {

/// Advice for a path that does not exist: what lies beside it and has nearly its name, or the first
/// folder on the way that is not there; else that relative paths start at the working directory.
/// Looks at no folder outside of fence_files(), and at the first 10,000 names of one.
std::string hint_of_missing(const std::string& path);

}  // namespace lockstep
