#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// The first of a few dates each of which changes again and again: a tournament in which four meet
/// in each match, half a cache line, and the earliest goes on (Knuth, The Art of Computer
/// Programming 3, section 5.4.1). Nothing is out of date in it, as in a heap of all that was ever
/// expected.
///
/// set() O(log n), less where the date wins few matches before and after.
class NextOf {
 public:
  /// A date more, Time::max() at first. Amortised O(1).
  std::int32_t add() {
    if (size_ == rounds_.front().size()) {
      grow();
    }
    return static_cast<std::int32_t>(size_++);
  }
  void set(std::int32_t which, Time when) {
    auto place = static_cast<std::size_t>(which);
    for (std::vector<Time>& round : rounds_) {
      round[place] = when;
      place /= kMatch;
      when = earliest(round, place);
      if (&round == &rounds_.back()) {
        first_ = when;
      } else if ((&round)[1][place] == when) {
        return;
      }
    }
  }
  /// Time::max() where there is none.
  Time first() const { return first_; }
  /// Whose it is, the lowest of those that have it. PRECONDITION: first() is a date. O(log n).
  std::int32_t which() const {
    std::size_t match = 0;
    for (std::size_t r = rounds_.size(); r-- > 0;) {
      const Time* of = rounds_[r].data() + match * kMatch;
      std::size_t i = std::min(of[0], of[1]) == first_ ? 0U : 2U;
      i += of[i] == first_ ? 0U : 1U;
      match = match * kMatch + i;
    }
    return static_cast<std::int32_t>(match);
  }

 private:
  static constexpr std::size_t kMatch = 4;

  static Time earliest(const std::vector<Time>& round, std::size_t match) {
    const Time* of = round.data() + match * kMatch;
    return std::min(std::min(of[0], of[1]), std::min(of[2], of[3]));
  }
  void grow() {
    rounds_.front().resize(std::max(kMatch, 2 * size_), Time::max());
    for (std::size_t r = 0; rounds_[r].size() > kMatch; ++r) {
      if (r + 1 == rounds_.size()) {
        rounds_.emplace_back();
      }
      const std::size_t matches = rounds_[r].size() / kMatch;
      std::vector<Time>& next = rounds_[r + 1];
      next.assign((matches + kMatch - 1) / kMatch * kMatch, Time::max());
      for (std::size_t match = 0; match < matches; ++match) {
        next[match] = earliest(rounds_[r], match);
      }
    }
  }

  std::size_t size_ = 0;
  std::vector<std::vector<Time>> rounds_ = {std::vector<Time>(kMatch, Time::max())};
  Time first_ = Time::max();
};

}  // namespace lockstep
