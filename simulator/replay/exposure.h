#pragma once

#include <array>
#include <span>

#include "base/units.h"
#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// Where one rank's step went: time in which it computed, and the rest by what ended each gap.
struct Exposure {
  Time compute;  ///< some compute operation ran
  Time bubble;   ///< none ran, and what a message of the pipeline is to bring was not there to send
  Time exposed;  ///< none ran, before the rank's last operation ended; but for the bubble
  std::array<Time, 7>
      by_group{};  ///< `exposed` by GroupKind of the communication that ended the gap
  Time idle;       ///< the part of `exposed` that no communication ended
};

/// Splits a rank's time line: every gap between computes, and the tail after the last, is cut at
/// the ends of the rank's communications and each piece is charged to the one that ends it. Where
/// that is a message between stages, what lies before OpTiming::moved is the pipeline's bubble: the
/// other stage still computed. With no time on the wire the bubble of a schedule is as published
/// (docs/models.md). O(n log n) in the operations.
Exposure exposure_of(const Program& program, std::span<const CommFamily> families,
                     std::span<const OpTiming> timing);

}  // namespace lockstep
