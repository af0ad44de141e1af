#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "simulator/replay/begun_order.h"
#include "simulator/replay/interference.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// A compute or an update time ends. With -1 - op a computation is to begin, with kExit + op a
/// stretch's exit is ready, and with kDue + op the first exit of a stretch may be.
struct OwnEvent {
  static constexpr std::int32_t kExit = 1 << 28, kDue = 1 << 29;
  Time when;
  std::int64_t order = 0;  ///< ties end in the order in which they began
  std::int32_t rank = 0, op = 0;
  bool operator>(const OwnEvent& other) const {
    return when != other.when ? when > other.when : order > other.order;
  }
};

/// Per operation of a rank: how many predecessors have not ended. One byte an operation, so that
/// those of many ranks stay in the cache; few have kMany or more, and are listed.
class RankWaits {
 public:
  RankWaits() = default;
  /// Of `first` and those that follow it. What comes after them waits for ever.
  explicit RankWaits(std::span<const std::int32_t> counts, std::int32_t first = 0)
      : first_(first), counts_(counts.size()) {
    std::ranges::transform(counts, counts_.begin(), [](std::int32_t count) {
      return static_cast<std::uint8_t>(std::min(count, kMany));
    });
    for (auto many = counts.begin();
         (many = std::find_if(many, counts.end(), is_many)) != counts.end(); ++many) {
      many_.emplace(first + static_cast<std::int32_t>(many - counts.begin()), *many);
    }
  }
  std::int32_t operator[](std::int32_t op) const {
    if (op < first_) {
      return 0;
    }
    const auto place = static_cast<std::size_t>(op - first_);
    if (place >= counts_.size()) {
      return 1;
    }
    return is_many(counts_[place]) ? many_.at(op) : counts_[place];
  }
  /// Of these operations: as there, and nothing.
  void take(std::int32_t first, std::int32_t last, const RankWaits& from) {
    for (std::int32_t op = first; op <= last; ++op) {
      set(op, from[op]);
    }
  }
  void clear(std::int32_t first, std::int32_t last) {
    forget_many(first, last + 1);
    const std::int32_t begin = std::max(first, first_);  // those before wait for nothing anyway
    std::fill(counts_.begin() + (begin - first_),
              counts_.begin() + (std::max(last + 1, begin) - first_), 0);
  }
  /// A predecessor of `op` has ended; how many are left.
  std::int32_t end_one(std::int32_t op) {
    std::uint8_t& count = counts_[static_cast<std::size_t>(op - first_)];
    if (!is_many(count)) {
      return --count;
    }
    const auto many = many_.find(op);
    const std::int32_t left = --many->second;
    if (!is_many(left)) {
      count = static_cast<std::uint8_t>(left);
      many_.erase(many);
    }
    return left;
  }
  /// Operations from `first` up to `end` wait for what they wait for `by` operations later; those
  /// before have begun. PRECONDITION: those before `first` wait for nothing.
  void move(std::int32_t first, std::int32_t end, std::int32_t by) {
    const auto size = static_cast<std::int32_t>(counts_.size());
    const std::int32_t stop = std::min(end, first_ + size - by);
    std::vector<std::pair<std::int32_t, std::int32_t>> moved;
    for (const auto& [op, count] : many_) {
      if (op >= first && op < stop) {
        moved.emplace_back(op + by, count);
      }
    }
    forget_many(first, stop + by);
    many_.insert(moved.begin(), moved.end());
    const auto begin = counts_.begin() + (first - first_);
    std::copy_backward(begin, counts_.begin() + (stop - first_),
                       counts_.begin() + (stop + by - first_));
    std::fill(begin, begin + by, 0);
  }
  /// Forgets operations at the front that wait for nothing.
  void trim() {
    const auto waits = std::ranges::find_if(counts_, [](std::uint8_t n) { return n > 0; });
    first_ += static_cast<std::int32_t>(waits - counts_.begin());
    counts_ = std::vector<std::uint8_t>(waits, counts_.end());
  }

 private:
  static constexpr std::int32_t kMany = UINT8_MAX;  ///< or more

  static bool is_many(std::int32_t count) { return count >= kMany; }
  using Many = std::unordered_map<std::int32_t, std::int32_t>;
  void forget_many(std::int32_t begin, std::int32_t end) {
    std::erase_if(many_, [&](const auto& each) { return each.first >= begin && each.first < end; });
  }
  void set(std::int32_t op, std::int32_t count) {
    if (op < first_) {
      LOCKSTEP_CHECK(count == 0, "what was trimmed waits for nothing");
      return;
    }
    many_.erase(op);
    counts_[static_cast<std::size_t>(op - first_)] =
        static_cast<std::uint8_t>(std::min(count, kMany));
    if (is_many(count)) {
      many_.emplace(op, count);
    }
  }

  std::int32_t first_ = 0;
  std::vector<std::uint8_t> counts_;
  Many many_;  ///< operations and their counts
};

/// Where a rank stands in its program.
struct RankState {
  struct Stream {
    std::int32_t next = 0;  ///< kProgram: position of the next operation to start
    bool busy = false;
    std::vector<std::int32_t> waiting;  ///< kNewestFirst: ready operations, newest last
  };

  RankWaits waits;
  std::vector<Stream> streams;
  std::vector<OpTiming> timing;  ///< of traced ranks
  std::size_t left = 0;          ///< operations that have not ended
  Time end;
  std::vector<std::int32_t> traced;  ///< the ranks it stands for whose operations are reported
  Time host;                         ///< until then the host is busy launching
  bool hosts = false;                ///< whether launching takes time
  /// Computations that wait for a message, and when it came: they are not launched before.
  std::vector<std::pair<std::int32_t, Time>> messages;
  BegunOrder::Begun begun;     ///< of streams with the newest first
  BesideCollectives beside;    ///< where collectives slow computations down
  std::int32_t told = -1;      ///< the stretch that it is in
  std::size_t look_below = 0;  ///< with fewer operations left it is looked for repetition
  std::int32_t plain = -1;  ///< the operation that begins a stretch, which is simulated this time
};

}  // namespace lockstep
