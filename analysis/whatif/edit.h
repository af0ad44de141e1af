#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

/// One free-form question: these operations, that much time.
///
///     forward-compute[stage=3] *= 0.8      params-all-gather = 0
///     compute[rank=12] *= 0.5              pp-comm = 0
///     all[rank=12-15] = ideal
///
/// What stands before the bracket is an optype, or a kind: compute, pp-comm, tp-comm, dp-comm, all.
/// In the bracket, separated by commas: stage, dp_rank, tp_rank, cp_rank, rank, step, mc, mb_id or
/// seq_id, a number or a range (2-5). "= X" sets seconds, "*= X" scales, "= ideal" gives the
/// ideal's time. Of a grouped operation it is the transfer that is meant.
struct EditRule {
  struct Condition {
    std::string key;
    std::int64_t first = 0, last = 0;
  };
  std::string text;            ///< as given
  std::vector<TraceOp> types;  ///< that are meant
  std::vector<Condition> conditions;
  bool scale = false;
  bool ideal = false;
  double value = 0;  ///< factor, or seconds; >= 0
};

/// ERRORS: Error about the part that is wrong, with what was expected.
EditRule parse_edit(std::string_view text);

/// Step times of T with all the rules applied, in order. `matched`, one a rule: operations changed.
StepTimes simulate_edits(const Scene& scene, const std::vector<EditRule>& rules,
                         std::vector<std::int64_t>* matched = nullptr);

}  // namespace lockstep::whatif
