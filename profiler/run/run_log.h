#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/run/run_plan.h"

namespace lockstep {

/// What running one item took on one rank.
struct RunRecord {
  std::int32_t item = 0;  ///< index into RunPlan::items
  double begin_s = 0;     ///< since the run began, by the host's clock
  double seconds = 0;     ///< of the operation
};

inline const RunItem& item_of(const RunPlan& plan, const RunRecord& record) {
  return plan.items[static_cast<std::size_t>(record.item)];
}

/// A rank's run: a record for each item, iteration after iteration.
struct RunLog {
  std::vector<RunRecord> records;
  std::vector<double> iterations_s;  ///< host time of each iteration
};

/// AICB's comm log CSV (specification of AICB, section 5): milliseconds, bandwidths in units of
/// 1024^3. Barriers are not logged, as AICB does not.
std::string comm_log_csv(const RunPlan& plan, const RunLog& log);

/// A table as nccl-tests prints it for each collective, ranks and size: mean time, algbw, busbw in
/// units of 1e9 B/s.
std::string nccl_tests_tables(const RunPlan& plan, const RunLog& log, const std::string& gpu);

/// BytePS's comm.json of one rank: a complete event an operation, microseconds, of the iterations
/// first … last counted from 0.
std::string byteps_json(const RunPlan& plan, const RunLog& log, std::int64_t first,
                        std::int64_t last);

/// Writes a timeline that Perfetto opens. ERRORS: those of AtomicFile.
void write_run_timeline(const RunPlan& plan, const RunLog& log, const std::string& path);

}  // namespace lockstep
