#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/replay/critical_path.h"
#include "simulator/replay/exposure.h"
#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_fold.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {

/// A step in all its operations, of one rank for all that do the same at the same time: what a
/// timeline, a pipeline picture and a report are drawn from.
struct StepDetail {
  /// Ranks with the same program and the same times.
  struct RankClass {
    std::int32_t first = 0;   ///< its first rank, whose operations are shown
    std::int64_t ranks = 1;   ///< that it stands for
    std::int32_t stage = -1;  ///< of the pipeline; -1: there is none
    Exposure exposure;
    Time hidden;  ///< communication that ran while the rank computed
    Time end;
  };
  /// A line of the picture.
  struct Track {
    std::int32_t rank_class = 0;
    std::string name;  ///< of the stream
  };
  /// What an operation is, shared by all that are alike.
  struct Kind {
    std::string name;
    OpType type = OpType::kOther;
    CommType comm = CommType::kNone;
    GroupKind group = GroupKind::kTp;  ///< of communication
    Bytes bytes;
    std::string track;
    bool operator==(const Kind&) const = default;
  };
  struct Event {
    std::int32_t track = 0, kind = 0;
    std::int32_t microbatch = -1, chunk = -1;  ///< -1: of none
    std::int32_t merged = 1;                   ///< operations that it stands for
    Time begin, end;
  };
  struct Piece {
    std::int32_t rank_class = 0, kind = 0;
    Time begin, end;
  };
  /// All operations of a kind on the first ranks of the classes.
  struct Sum {
    std::int32_t kind = 0;
    std::int64_t count = 0;
    Time time;  ///< from begin to end, waiting for others included
  };

  std::vector<RankClass> classes;  ///< by stage, then by first rank
  std::int64_t all_classes = 0;    ///< that there are; some may not be drawn
  std::vector<Track> tracks;
  std::vector<Kind> kinds;
  std::vector<Event> events;    ///< by track, then by time
  std::vector<Piece> critical;  ///< the critical path in order of time; empty: not worked out
  std::vector<Sum> sums;        ///< the longest first
  bool merged = false;          ///< neighbours of a pass are one event
};

/// Which ranks' times a run keeps, and what follows from them.
///
/// Of a folded step one rank of each class; else every rank, unless that is more than the memory
/// allows, then some of each stage. 24 B an operation kept.
class StepRecorder {
 public:
  using Name = std::function<std::string(std::int32_t rank, std::int32_t op)>;

  /// `final_fold`: of the step's last phase, where it is folded. The arguments must outlive this.
  StepRecorder(const RankPrograms& work, const StepFold* final_fold);

  bool records(std::int32_t rank) const { return slot_[static_cast<std::size_t>(rank)] >= 0; }
  void record(std::int32_t rank, std::int32_t op, const OpTiming& timing) {
    timing_[static_cast<std::size_t>(slot_[static_cast<std::size_t>(rank)])]
           [static_cast<std::size_t>(op)] = timing;
  }

  /// The critical path, if the times of all ranks are known.
  std::optional<CriticalPath> critical() const;
  /// `op_name`, `track_name`: of an operation of a rank. At most `most_events` events: where there
  /// are more, neighbours on a line that belong to the same pass of a microbatch become one, and if
  /// these are too many the last classes of each stage are left out.
  StepDetail detail(const Name& op_name, const Name& track_name,
                    const std::optional<CriticalPath>& path,
                    std::size_t most_events = 60'000) const;

 private:
  std::int32_t stage_of(std::int32_t rank) const;
  /// Slots whose first ranks do the same at the same time, by stage and rank; the weights add up.
  std::vector<std::vector<std::int32_t>> classes() const;

  const RankPrograms& work_;
  std::vector<std::int32_t> slot_;             // per rank; -1: its times are not kept
  std::vector<std::int32_t> same_as_;          // per rank: the slot of its class; -1: unknown
  std::vector<std::int32_t> rank_of_;          // per slot
  std::vector<std::int64_t> weight_;           // per slot: ranks that it stands for
  std::vector<std::vector<OpTiming>> timing_;  // per slot and operation
};

}  // namespace lockstep
