#pragma once

#include <algorithm>
#include <cstdlib>

namespace lockstep::testing {

/// Whether the tests run under a sanitizer, where everything takes some ten times as long.
inline bool is_sanitized() { return std::getenv("LOCKSTEP_SANITIZED") != nullptr; }

/// So many random cases; under a sanitizer, which looks for other faults than wrong results, an
/// eighth. The release build runs all of them.
inline int cases_of(int usual) { return is_sanitized() ? std::max(1, usual / 8) : usual; }

}  // namespace lockstep::testing
