#pragma once

#include <string>
#include <string_view>

#include "simulator/replay/step_result.h"

namespace lockstep {

/// The two layouts of SimAI's EndToEnd.csv: of its analytical mode (whole microseconds, no sums)
/// and of its ns-3 mode (six decimals, a SUM row, a line of totals).
enum class EndToEndLayout { kAnalytical, kNs3 };

/// The table as SimAI writes it: two lines of summary, a line of titles, one row a layer (compute,
/// exposed and total communication in us; algorithm and bus bandwidth in GiB/s).
///
/// `prefix` is the file's name before "EndToEnd.csv", without folder: SimAI prints it in the
/// summary of the analytical layout. Of a StepResult of flavour "simai" sums are accumulated in
/// SimAI's order and precision, by its rules of which column belongs to which group, so that every
/// digit agrees; else they are those of the result (CP and WORLD stand with TP). A layer without
/// communication has "-nan" and a name with a comma or a quote is quoted. O(layers).
std::string end_to_end_csv(const StepResult& result, EndToEndLayout layout,
                           std::string_view prefix);

/// "{prefix}EndToEnd.csv".
std::string end_to_end_name(std::string_view prefix);

}  // namespace lockstep
