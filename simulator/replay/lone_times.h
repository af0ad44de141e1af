#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/replay/communicator_shape.h"
#include "simulator/replay/recurrence_run.h"

namespace lockstep {

/// When the places of a communicator's collective finish if nothing else is on its constraints, to
/// the picosecond: the recurrence of recurrence_run.h instead of events.
class LoneTimes {
 public:
  struct Times {
    std::vector<Time> finish;  ///< by place
    FlowGraphTimes ends;       ///< by slot
  };

  /// Nothing where slots share constraints or the shape is no recurrence for other reasons, where a
  /// place may finish before all have entered, and where events would be as quick. O(what one
  /// collective is).
  static std::unique_ptr<LoneTimes> of(const CommunicatorShape& shape);

  /// `entry` of each place; `done`: how many transfers of each slot had arrived, and nothing been
  /// under way, before the last entry. False where the clock ends before the collective does.
  /// O(slots and waits) a transfer of a slot until the collective repeats itself.
  bool tell(std::span<const Time> entry, std::span<const std::int32_t> done, Times& times) const;
  using SlotState = PreparedRecurrence::SlotState;
  /// Where each slot is at a moment. `entry` of each place, Time::max() where it has not entered.
  std::vector<SlotState> at(std::span<const Time> entry, std::span<const std::int32_t> done,
                            Time moment) const;
  std::int64_t rate(std::size_t slot) const { return recurrence_.rate(slot); }
  /// How long it takes where all enter at once, which is as long as anything in it goes on without
  /// a further entry.
  Time duration() const { return duration_; }

 private:
  std::vector<Time> slot_entries(std::span<const Time> entry) const;

  explicit LoneTimes(PreparedRecurrence recurrence) : recurrence_(std::move(recurrence)) {}

  PreparedRecurrence recurrence_;
  Time duration_;
};

}  // namespace lockstep
