#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/replay/program.h"

namespace lockstep {

/// Operations of a program in a row that nothing outside looks into: computations, and collectives
/// of one family in which nobody finishes before all have entered. The first starts all others, the
/// last ends after them, and their streams carry nothing else meanwhile. So when the ranks of a
/// group get to it decides when they are through, as long as nobody else is on their ports. It also
/// decides when `exits` are ready, which nothing here waits for, such as the reduction of a
/// gradient that is complete.
struct Stretch {
  std::int32_t first = 0, last = 0;  ///< operations
  std::int32_t first_collective = 0;
  std::int32_t family = -1;  ///< of the collectives
  /// Equal where all operations are, but for sequence and microbatch; over all programs.
  std::int32_t content = -1;
  /// A stream that it is on, and its operations there: places in Program::stream_ops().
  struct Use {
    std::int32_t stream, begin, end;
  };
  std::vector<Use> streams;
  /// Collectives among its operations that are no part of it, on other streams: each waits for some
  /// of it, and for nothing else.
  std::vector<std::int32_t> exits;

  bool is_exit(std::int32_t op) const { return std::ranges::binary_search(exits, op); }
};

/// The stretches of all programs of a step. Those that overlap are not among them, nor those of
/// fewer than kFewest operations or more than kMost. O((operations + dependencies) kMost) at worst,
/// mostly a few times the operations.
class Stretches {
 public:
  static constexpr std::int32_t kFewest = 4, kMost = 128;

  Stretches() = default;
  explicit Stretches(const RankPrograms& work);

  bool empty() const { return stretches_.empty(); }
  std::span<const Stretch> all() const { return stretches_; }
  /// The one that an operation starts; nullptr where it starts none.
  const Stretch* starting(std::int32_t program, std::int32_t op) const {
    const std::int32_t index =
        at_op_[static_cast<std::size_t>(program)].empty()
            ? -1
            : at_op_[static_cast<std::size_t>(program)][static_cast<std::size_t>(op)];
    return index < 0 ? nullptr : &stretches_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<Stretch> stretches_;
  std::vector<std::vector<std::int32_t>> at_op_;  // by program and operation; empty: none at all
};

}  // namespace lockstep
