#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "simulator/replay/op_names.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_detail.h"
#include "simulator/replay/step_result.h"
#include "simulator/replay/step_simulation.h"
#include "simulator/replay/step_timeline.h"
#include "simulator/replay/step_trace.h"

namespace lockstep {

/// What is kept of a step while it runs, for the picture, the trace, the critical path, the detail
/// and the memory that StepOptions ask for; and these, made from it when the step is over.
class StepRecords {
 public:
  /// The arguments must outlive this. ERRORS: Error where a trace is wanted of a job that has no
  /// columns for one.
  StepRecords(const StepPrograms& compiled, const OpNames& names, const StepOptions& options);

  /// Whether critical path or detail are wanted, which need the fold of the step's last phase.
  bool explains() const { return options_.explain || options_.detail != nullptr; }
  /// Has the replay report what is wanted. `final_fold`, of the last phase where the step is folded
  /// and explains(), else nullptr, must outlive this, which must stay where it is.
  void listen(ReplayOptions& replay, const StepFold* final_fold);

  /// Timeline and trace, where the options name them; `together` as the trace wants it.
  void write(const StepTrace::Together& together);
  /// The critical path, the detail and what may be said of them. `nodes` are those of the ranks.
  void explain(const Topology& topology, const std::vector<NodeId>& nodes,
               const ScheduleSource& schedules, StepResult& result) const;
  /// What the first rank of each program of the first job held; `stage` is that of a rank.
  std::vector<MemoryTimeline> memory(
      const std::function<std::int32_t(std::int32_t rank)>& stage) const;

 private:
  bool drawn(std::int32_t rank) const { return timeline_ && rank < options_.timeline_ranks; }
  bool in_trace(std::int32_t rank) const {
    return trace_ && rank < compiled_.jobs.front().ranks && trace_->records(rank);
  }
  bool held(std::int32_t rank) const {
    return !held_.empty() && !held_[static_cast<std::size_t>(rank)].empty();
  }
  bool kept(std::int32_t rank) const { return kept_ && kept_->records(rank); }
  void record(std::int32_t rank, std::int32_t op, const OpTiming& timing);

  const StepPrograms& compiled_;
  const OpNames& names_;
  const StepOptions& options_;
  std::optional<StepTimeline> timeline_;
  std::optional<StepTrace> trace_;
  std::optional<StepRecorder> kept_;
  std::vector<std::int32_t> holders_;        // ranks whose memory is told, ascending
  std::vector<std::vector<OpTiming>> held_;  // by rank and operation; empty for all others
};

}  // namespace lockstep
