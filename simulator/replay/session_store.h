#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "simulator/replay/communicator_shape.h"
#include "simulator/replay/island_simulation.h"
#include "simulator/replay/lone_times.h"
#include "simulator/replay/session_memo.h"

namespace lockstep {

/// What communicators of one shape share.
struct SessionKind {
  CommunicatorShape shape;
  SessionMemo memo;
  std::vector<std::unique_ptr<IslandSimulation>> idle;  ///< simulations to use again
  /// Where it has them (lone_times.h); sought once.
  const LoneTimes* lone_times();

 private:
  std::unique_ptr<LoneTimes> lone_;
  bool lone_sought_ = false;
};

/// What a fold's communicators are, by number.
struct FoldedCommunicators {
  std::vector<SessionKind*> kind;
  std::vector<std::vector<std::int32_t>> constraints;  ///< of the fold, by number in the shape
  std::vector<std::int64_t> transfers;                 ///< of one collective, all ranks
};

/// What communicators have done in sessions, by their shapes. A shape has all that decides it in
/// numbers, so that what is remembered holds for any step with communicators of that shape.
class SessionStore {
 public:
  /// Stays where it is. O(numbers of the shape).
  SessionKind* kind_of(CommunicatorShape shape);
  /// All of a fold; kept there, for this store. O(slots and their terms) the first time.
  std::shared_ptr<const FoldedCommunicators> communicators_of(const StepFold& fold);
  /// Whether nothing more is to be recorded: 2^19 nodes of all memos together, about 130 B each.
  bool full() const { return nodes_ >= kMostNodes; }
  bool half_full() const { return nodes_ >= kMostNodes / 2; }
  /// A memo had so many nodes before it was written to, and has so many now.
  void resized(std::size_t before, std::size_t now) { nodes_ += now - before; }
  /// Nobody may use a kind of it any more.
  void clear();

  static constexpr std::int64_t kWatchedMoments = 4096;
  /// Called once in so many points of time that are simulated; may throw to end the work.
  void watch(std::function<void()> watch) { watch_ = std::move(watch); }
  /// One is about to be.
  void moment() {
    if (++moments_ % kWatchedMoments == 0 && watch_) {
      watch_();
    }
  }

 private:
  SessionKind* kind_of(CommunicatorShape shape, std::vector<std::int64_t> key);

  static constexpr std::size_t kMostNodes = std::size_t{1} << 19;
  std::map<std::vector<std::int64_t>, std::unique_ptr<SessionKind>> kinds_;
  /// Goes when what folds know of this store is out of date.
  std::shared_ptr<const int> valid_ = std::make_shared<int>();
  std::size_t nodes_ = 0;
  std::int64_t moments_ = 0;
  std::function<void()> watch_;
};

}  // namespace lockstep
