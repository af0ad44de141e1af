#pragma once

#include <cstdint>
#include <vector>

#include "report/picture/picture.h"

namespace lockstep {

/// matplotlib's colour map "Reds" (ColorBrewer's nine anchors, 256 steps), 1.0 to 1.5, clamped.
Colour heat_colour(double slowdown);

/// The workers of a pipeline stage, as columns: (dp_rank * cp + cp_rank) * tp + tp_rank.
struct HeatColumns {
  std::int32_t dp = 1, cp = 1, tp = 1;
};

/// How slow each worker makes the job, as StragglerAnalysis draws it: rows are pipeline stages (0
/// on top), columns data-parallel ranks, square cells with two significant digits, a colour bar
/// above. Tensor- and context-parallel ranks stand beside each other in their data-parallel rank;
/// a line parts it from the next. `slowdown`: [stage * columns + column]; not empty.
Picture heat_map(const std::vector<double>& slowdown, const HeatColumns& columns);

}  // namespace lockstep
