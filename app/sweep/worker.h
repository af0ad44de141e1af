#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "app/sweep/crew.h"
#include "app/sweep/sweep_task.h"

namespace lockstep {

/// The letter that ends a worker.
inline constexpr std::string_view kStopLetter = "stop";

/// A rank's work: takes tasks from rank 0, answers with rows (and questions after its files, see
/// same_files.h, with what it sees), until it is told to stop; then it
/// stops at once, in the middle of a task too. `signalled` says whether a signal asked this process
/// to end: rank 0, which was most likely asked as well, then has `grace` to say so. Returns whether
/// it did; if not, MPI cannot be left in peace.
bool work(SweepRunner& runner, Crew& crew, const std::function<bool()>& signalled,
          std::chrono::milliseconds grace);

/// Waits longer and longer while nothing happens, so that a waiting rank leaves its core to others
/// (MPI itself would spin).
class Patience {
 public:
  std::chrono::microseconds next() {
    const auto now = wait_;
    wait_ = std::min(wait_ * 2, kLongest);
    return now;
  }
  void reset() { wait_ = kShortest; }

 private:
  static constexpr std::chrono::microseconds kShortest{50}, kLongest{2000};
  std::chrono::microseconds wait_ = kShortest;
};

}  // namespace lockstep
