#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/run/run_log.h"

namespace lockstep {

/// What a rank's run comes to: communication by operation, group and size without what is init, and
/// the iterations. Deviations are of the population.
struct RunSummary {
  struct Row {
    std::string type, group;  ///< AICB's words: "all_reduce", "tp_group"
    std::int64_t bytes = 0;   ///< of the full tensor
    std::int64_t ranks = 1;   ///< of the group; messages are of one, as AICB has them
    std::int64_t count = 0;
    double mean_ms = 0, deviation_ms = 0;
    double mean_busbw = 0, deviation_busbw = 0;  ///< units of 1024^3 B/s (AicbBandwidth)
  };
  /// Of those that do more than init.
  struct Iterations {
    std::int64_t count = 0;
    double first_ms = 0, longest_ms = 0, shortest_ms = 0, mean_ms = 0, p90_ms = 0, deviation_ms = 0;
  };
  std::vector<Row> rows;  ///< ordered by type, group, size
  std::optional<Iterations> iterations;
};

/// O(records · log rows).
RunSummary summarize(const RunPlan& plan, const RunLog& log);

/// What AICB prints after a run.
std::string to_text(const RunSummary& summary);
/// lockstep-run-summary/1 (docs/formats/run-json.md).
std::string to_json_text(const RunSummary& summary, const RunPlan& plan,
                         const std::string& transport);

}  // namespace lockstep
