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
  int group = -1;                   ///< index into RunPlan::groups; -1: computes
  std::int64_t bytes = 0;           ///< of the full tensor
  std::int32_t peer = -1;           ///< messages
  bool send = false;
  std::int32_t root = 0;  ///< broadcast and reduce: whose place in the group
  ComputeCall compute;
  bool epoch_end = false;           ///< ends an iteration, after all before it
  int stream = 0;                   ///< index into RunPlan::streams
  std::vector<std::int32_t> after;  ///< earlier items, besides those of its stream
};

/// A communicator: AICB's word for it, and its members. One that messages go through has two, the
/// sender and the receiver: NCCL carries out what is in one communicator in order, so that messages
/// of two directions in one would wait for each other.
struct RunGroup {
  std::string name;  ///< "tp_group"
  std::vector<std::int32_t> ranks;
  bool messages = false;
};

/// All that one rank does, in order, and every communicator of the job. All ranks have the same
/// groups in the same order, and their collectives match. The last item is an epoch_end.
struct RunPlan {
  std::int64_t world = 1;
  std::int32_t rank = 0;
  std::vector<RunGroup> groups;
  std::vector<std::string> streams{"all"};
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
///                 last, each with its computation before its communication, one after the other;
///                 pipeline messages are not in such a table. Groups by Megatron's order
///                 tp-cp-ep-dp-pp.
///   OpTable       the rank's program, on its streams and after what its operations name
///
/// ERRORS: Error: a rank that the workload has not, several jobs, more ranks than `world`.
RunPlan run_plan(const Workload& workload, const RunChoice& choice);

/// AICB's general-purpose workload CSV (specification of AICB, section 4): what torchrun would run.
/// `tp`, `ep`, `pp`: how the ranks are cut; the sizes in the file must agree. Computation rows are
/// products of their shapes, or idle. Rows run one after the other, but messages that follow each
/// other side by side. All stages of a pipeline run the one file: its first leaves out messages to
/// and from the stage before, its last those of the stage after.
/// ERRORS: Error with file, line and field: unknown types, groups or neighbours, sizes that are
/// none, a group size other than the cut's, a root that is not in the group, messages that no other
/// stage has the other end of; a log of a run.
struct CsvCut {
  std::int64_t tp = 1, ep = 1, pp = 1;
};
RunPlan read_aicb_workload(std::string_view text, const std::string& file, const CsvCut& cut,
                           const RunChoice& choice, Warnings& warnings);

/// What an item does: "send 32 MiB to rank 2".
std::string what(const RunPlan& plan, const RunItem& item);
/// The plan as a table for people: runs of equal items are one line.
std::string describe(const RunPlan& plan);
/// The same as lockstep-run-plan/1 (docs/formats/run-json.md).
std::string to_json_text(const RunPlan& plan);

}  // namespace lockstep
