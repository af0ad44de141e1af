#pragma once

#include <cstddef>

namespace lockstep::testing {

/// How often this program called operator new so far. Link tests/support/allocations.cc, which
/// replaces it; it is in no library.
std::size_t allocations();

}  // namespace lockstep::testing
