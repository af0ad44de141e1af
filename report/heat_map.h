#pragma once

#include <cstdint>
#include <vector>

#include "report/picture/picture.h"

namespace lockstep {

/// matplotlib's colour map "Reds" (ColorBrewer's nine anchors, 256 steps), 1.0 to 1.5, clamped.
Colour heat_colour(double slowdown);

/// How slow each worker makes the job, as StragglerAnalysis draws it: rows are pipeline stages (0
/// on top), columns data-parallel ranks, square cells with two significant digits, a colour bar
/// above. `slowdown`: [stage * dp + dp_rank]; not empty.
Picture heat_map(const std::vector<double>& slowdown, std::int32_t dp);

}  // namespace lockstep
