#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/isolate/nursery.h"
#include "base/json.h"

namespace lockstep {

/// What became of one point of a sweep.
struct SweepRow {
  std::int64_t point = 0;
  Ending ending = Ending::kDone;
  int exit_code = 0;
  std::string reason;                                 ///< of an ending that is not kDone
  std::vector<std::pair<std::string, Json>> outputs;  ///< scalars, by dotted key
  double wall_s = 0, cpu_s = 0;                       ///< not part of the table
  std::int64_t peak_bytes = 0;                        ///< not part of the table
  int rank = 0;                                       ///< not part of the table
  /// Files that were kept, by their names in the point's folder; not part of the table. No value:
  /// none were to be kept.
  std::optional<std::vector<std::string>> kept = std::nullopt;
};

/// Whether the point has a result.
inline bool ended_well(const SweepRow& row) {
  return row.ending == Ending::kDone || row.ending == Ending::kCheckFailed;
}

/// The scalars of a result: numbers, texts and truths by dotted key ("memory.weights_bytes"), in
/// the document's order. Of arrays those that hold one object are entered ("points.0.engines…");
/// others are passed over unless `wanted` names something in them ("plans.0.time_s"); if `wanted`
/// is not empty, only what it names is taken. How long the computation took is no result: keys that
/// end in cpu_s or wall_s are passed over; so is the command line, which the flags stand for.
std::vector<std::pair<std::string, Json>> scalars_of(const Json& document,
                                                     const std::vector<std::string>& wanted);

/// The row of a command that has ended. One that says it is done but whose output is no JSON is a
/// bug.
SweepRow make_row(std::int64_t point, const IsolatedResult& result,
                  const std::vector<std::string>& wanted);

/// One line of JSON, without its newline; and back. The line ends in a check sum of itself, so that
/// one that was torn is known: no value then.
std::string to_line(const SweepRow& row);
std::optional<SweepRow> row_of_line(std::string_view line);

}  // namespace lockstep
