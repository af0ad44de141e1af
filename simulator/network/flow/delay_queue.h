#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "simulator/network/flow/four_ary_heap.h"

namespace lockstep {

/// Items by date, where most come a while after now that is one of a few, as latencies are: those
/// of one such while come in the order of their dates, so that they need but stand in line. An item
/// takes the first of a few lines whose last one is not later; a heap has what fits in none.
///
/// Items of a date come out in the order in which they went in. push() and pop() O(lines), of what
/// is in the heap O(log n). Memory is kept for reuse.
template <class T>
class DelayQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// Time::max() where it is empty.
  Time first() const { return first_; }

  /// PRECONDITION: before Time::max().
  void push(Time when, const T& item) {
    ++size_;
    first_ = std::min(first_, when);
    const Entry entry{when, order_++, item};
    for (std::size_t i = 0; i < kLines; ++i) {
      Line& line = lines_[i];
      if (line.empty()) {
        front_[i] = when;
      } else if (line.entries.back().when > when) {
        continue;
      }
      line.entries.push_back(entry);
      return;
    }
    others_.push(entry);
    front_[kLines] = others_.top().when;
  }

  /// Takes the first. PRECONDITION: not empty.
  T pop() {
    std::size_t first = kLines + 1;
    for (std::size_t i = 0; i <= kLines; ++i) {
      if (front_[i] == first_ && (first > kLines || order_of(i) < order_of(first))) {
        first = i;
      }
    }
    --size_;
    const T item = first < kLines ? lines_[first].front().item : others_.top().item;
    if (first < kLines) {
      Line& line = lines_[first];
      line.pop();
      front_[first] = line.empty() ? Time::max() : line.front().when;
    } else {
      others_.pop();
      front_[first] = others_.empty() ? Time::max() : others_.top().when;
    }
    first_ = *std::ranges::min_element(front_);
    return item;
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t order = 0;
    T item;
    bool operator<(const Entry& other) const {
      return std::tie(when, order) < std::tie(other.when, other.order);
    }
  };
  struct Line {
    std::vector<Entry> entries;
    std::size_t gone = 0;  ///< the first ones
    bool empty() const { return gone == entries.size(); }
    const Entry& front() const { return entries[gone]; }
    void pop() {
      constexpr std::size_t kMany = 64;
      if (++gone == entries.size()) {
        entries.clear();
        gone = 0;
      } else if (gone >= kMany && 2 * gone >= entries.size()) {
        entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(gone));
        gone = 0;
      }
    }
  };

  static constexpr std::size_t kLines = 4;

  std::uint64_t order_of(std::size_t i) const {
    return i < kLines ? lines_[i].front().order : others_.top().order;
  }

  std::array<Line, kLines> lines_;
  FourAryHeap<Entry> others_;
  /// Dates of the first of each line and of the others.
  std::array<Time, kLines + 1> front_ = {Time::max(), Time::max(), Time::max(), Time::max(),
                                         Time::max()};
  std::uint64_t order_ = 0;
  std::size_t size_ = 0;
  Time first_ = Time::max();
};

}  // namespace lockstep
