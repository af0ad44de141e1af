#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "app/sweep/cost.h"
#include "app/sweep/crew.h"
#include "app/sweep/journal.h"
#include "app/sweep/sweep_task.h"

namespace lockstep {

/// Rank 0's work: hands out the points, the longest first by prediction, to its own runner and to
/// the other ranks, and takes the rows in. Another rank has one point in work and one in hand, so
/// that it never waits for a letter.
class SweepCoordinator {
 public:
  using MakeTask = std::function<SweepTask(std::int64_t point)>;

  /// `crew` may be null: this process alone.
  SweepCoordinator(const Grid& grid, SweepRunner& runner, Crew* crew, SweepJournal& journal,
                   MakeTask make_task);

  /// Computes `points`. Calls `each(rows so far)` between rows; stops early, with the points in
  /// flight lost, when it returns false. Returns whether all were computed.
  /// ERRORS: a rank that was asked (same_files.h) sees other files.
  bool run(std::vector<std::int64_t> points, const std::function<bool(std::int64_t)>& each);

 private:
  void sort_waiting();
  /// Fills the rank's hand: at most so many points.
  void serve(std::size_t rank, int in_hand);
  void take_in(const SweepRow& row);

  const Grid& grid_;
  SweepRunner& runner_;
  Crew* crew_;
  SweepJournal& journal_;
  MakeTask make_task_;
  SweepCost cost_;
  std::vector<std::int64_t> waiting_;  // the next one last
  std::vector<int> given_;             // to each rank and not answered
  std::int64_t taken_in_ = 0, sort_at_ = 8;
};

}  // namespace lockstep
