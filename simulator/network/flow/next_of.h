#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// The first of a few dates each of which changes again and again: a tournament in which each
/// match keeps the earlier one (Knuth, The Art of Computer Programming 3, section 5.4.1). Nothing
/// is out of date in it, as in a heap of all that was ever expected.
///
/// set() and which() O(log n), set() less where the date wins few matches before and after.
class NextOf {
 public:
  /// A date more, Time::max() at first. Amortised O(1).
  std::int32_t add() {
    if (size_ == leaves_) {
      grow();
    }
    return static_cast<std::int32_t>(size_++);
  }
  std::size_t size() const { return size_; }
  void set(std::int32_t which, Time when) {
    std::size_t match = leaves_ + static_cast<std::size_t>(which);
    first_[match] = when;
    while (match > 1) {
      const Time earlier = std::min(first_[match], first_[match ^ 1]);
      match /= 2;
      if (first_[match] == earlier) {
        return;
      }
      first_[match] = earlier;
    }
  }
  Time of(std::int32_t which) const { return first_[leaves_ + static_cast<std::size_t>(which)]; }
  /// Time::max() where there is none.
  Time first() const { return first_[1]; }
  /// Whose it is; of equal ones that with the lowest number. PRECONDITION: size() > 0.
  std::int32_t which() const {
    std::size_t match = 1;
    while (match < leaves_) {
      match = 2 * match + (first_[2 * match] == first_[1] ? 0 : 1);
    }
    return static_cast<std::int32_t>(match - leaves_);
  }

 private:
  void grow() {
    const std::size_t leaves = 2 * leaves_;
    std::vector<Time> first(2 * leaves, Time::max());
    for (std::size_t i = 0; i < size_; ++i) {
      first[leaves + i] = first_[leaves_ + i];
    }
    for (std::size_t match = leaves - 1; match > 0; --match) {
      first[match] = std::min(first[2 * match], first[2 * match + 1]);
    }
    first_.swap(first);
    leaves_ = leaves;
  }

  std::size_t size_ = 0, leaves_ = 1;
  std::vector<Time> first_ = {Time::max(), Time::max()};  // match 1 is the last; then the dates
};

}  // namespace lockstep
