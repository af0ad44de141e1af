#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "profiler/run/transport.h"
#include "workloads/workload.h"

namespace lockstep {

/// One thing that a rank does: a computation, or its part in a collective or message.
struct RunItem {
  std::string name;
  std::string stage;                ///< for the log; "init…" is left out of the summary
  CommType comm = CommType::kNone;  ///< kNone: computes
  int group = -1;                   ///< index into RunPlan::groups; -1: a message, or computes
  std::int64_t bytes = 0;           ///< of the full tensor
  std::int32_t peer = -1;           ///< messages
  bool send = false;
  ComputeCall compute;
  bool epoch_end = false;  ///< ends an iteration
};

/// A communicator: AICB's word for it, and its members.
struct RunGroup {
  std::string name;  ///< "tp_group"
  std::vector<std::int32_t> ranks;
};

/// All that one rank does, in order, and every communicator of the job. All ranks have the same
/// groups in the same order, and their collectives match.
struct RunPlan {
  std::int64_t world = 1;
  std::int32_t rank = 0;
  std::vector<RunGroup> groups;
  std::vector<RunItem> items;
  std::int64_t largest_bytes = 0;
};

enum class RunCompute { kIdle, kGemm };
/// What of a workload is run.
struct RunChoice {
  std::int64_t world = 1;  ///< ranks that there are
  std::int32_t rank = 0;
  RunCompute compute = RunCompute::kIdle;  ///< kGemm: a product that lasts about as long
  /// FLOP/s that sizes the products of kGemm; shapes that a workload gives are taken as they are.
  double flops = 500e12;
  std::int64_t layers = 0;  ///< of a layer table: only so many lines; 0: all
};

/// SimAI's layer table or our OpTable: what the rank of that number does in one step.
///
///   layer table   forward of every line from the first, then input and weight gradients from the
///                 last, each with its computation before its communication; pipeline messages are
///                 not in such a table. Groups by Megatron's order tp-cp-ep-dp-pp.
///   OpTable       the rank's program in its order, on one stream: what overlaps in a simulation is
///                 run one after the other here
///
/// ERRORS: Error: a rank that the workload has not, several jobs, more ranks than `world`.
RunPlan run_plan(const Workload& workload, const RunChoice& choice);

/// AICB's general-purpose workload CSV (specification of AICB, section 4): what torchrun would run.
/// `tp`, `ep`, `pp`: how the ranks are cut; the sizes in the file must agree. Computation rows are
/// products of their shapes, or idle.
/// ERRORS: Error with file, line and field: unknown types or groups, sizes that are none, a group
/// size other than the cut's.
struct CsvCut {
  std::int64_t tp = 1, ep = 1, pp = 1;
};
RunPlan read_aicb_workload(std::string_view text, const std::string& file, const CsvCut& cut,
                           const RunChoice& choice, Warnings& warnings);

/// The plan as a table for people: runs of equal items are one line.
std::string describe(const RunPlan& plan);
/// The same as lockstep-run-plan/1 (docs/formats/run-json.md).
std::string to_json_text(const RunPlan& plan);

}  // namespace lockstep
