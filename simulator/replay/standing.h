#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// How a part of a replay stands at some moment, in numbers: blocks, each as it is, and relative to
/// the moment and to how far its ranks have come. Two such say whether the part does the same
/// again.
struct Standing {
  struct Block {
    std::size_t as_it_is, relative, end;  ///< where its numbers begin in `values`
    bool may_stay, may_move;              ///< whether the ones, the others are all that it hangs on
  };
  Time now;
  std::vector<Block> blocks;
  std::vector<std::int64_t> values;
  std::vector<std::int32_t> done, next;   ///< of each rank: operations, the first not started
  std::vector<std::int64_t> collectives;  ///< that are over, of each communicator

  void begin_block() { blocks.push_back({values.size(), 0, 0, false, false}); }
  void relative() { blocks.back().relative = values.size(); }
  void end_block(bool may_stay, bool may_move) {
    blocks.back().end = values.size();
    blocks.back().may_stay = may_stay;
    blocks.back().may_move = may_move;
  }
  void add(std::int64_t value) { values.push_back(value); }
  void add(Time time) { values.push_back(time.count_ps()); }
  /// Whether anything can come of comparing it.
  bool comparable() const;
  /// Whether every block is as it was or where it was, relatively; `moved` tells which of them by
  /// block. O(values).
  bool repeats(const Standing& earlier, std::vector<char>& moved) const;
};

}  // namespace lockstep
