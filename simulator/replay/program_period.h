#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/program.h"
#include "simulator/replay/stretch.h"

namespace lockstep {

/// Where a program repeats itself: from operation `begin` on, each is alike the one `length` later,
/// up to `end`: it does the same, on the same stream and with the same neighbours, those that wait
/// for it are the same but for the shift, and so are the stretches that it begins.
struct ProgramPeriod {
  std::int32_t begin = 0, end = 0, length = 0;  ///< length 0: it does not
  std::int32_t reach = 0;  ///< from an operation to the last that waits for it, at most
};

/// The shortest period that a program has in its middle, for a quarter of it or more. O(operations
/// and what waits for them), times the operations within a period that are alike at worst.
ProgramPeriod period_of(const RankPrograms& work, std::int32_t program, const Stretches* stretches);

}  // namespace lockstep
