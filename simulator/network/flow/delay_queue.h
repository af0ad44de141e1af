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
    const Entry entry{when, order_++, item};
    std::size_t i = 0;
    while (i < kLines && !lines_[i].takes(when)) {
      ++i;
    }
    if (i < kLines) {
      front_[i] = lines_[i].empty() ? when : front_[i];
      lines_[i].push(entry);
    } else {
      others_.push(entry);
      front_[kLines] = others_.top().when;
    }
    if (when < first_) {
      first_ = when;
      at_ = i;
    }
  }

  /// Takes the first. PRECONDITION: not empty.
  T pop() {
    --size_;
    const T item = at_ < kLines ? lines_[at_].front().item : others_.top().item;
    if (at_ < kLines) {
      lines_[at_].pop();
      front_[at_] = lines_[at_].empty() ? Time::max() : lines_[at_].front().when;
    } else {
      others_.pop();
      front_[at_] = others_.empty() ? Time::max() : others_.top().when;
    }
    find_first();
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
  /// First in, first out, in a ring of a power of two places.
  class Line {
   public:
    bool empty() const { return begin_ == end_; }
    bool takes(Time when) const { return empty() || at(end_ - 1).when <= when; }
    const Entry& front() const { return at(begin_); }
    void push(const Entry& entry) {
      if (end_ - begin_ == ring_.size()) {
        grow();
      }
      ring_[end_++ & (ring_.size() - 1)] = entry;
    }
    void pop() { ++begin_; }

   private:
    const Entry& at(std::size_t i) const { return ring_[i & (ring_.size() - 1)]; }
    void grow() {
      std::vector<Entry> larger(std::max<std::size_t>(16, 2 * ring_.size()));
      for (std::size_t i = begin_; i < end_; ++i) {
        larger[i - begin_] = at(i);
      }
      end_ -= begin_;
      begin_ = 0;
      ring_.swap(larger);
    }

    std::vector<Entry> ring_;
    std::size_t begin_ = 0, end_ = 0;
  };

  static constexpr std::size_t kLines = 4;

  std::uint64_t order_of(std::size_t i) const {
    return i < kLines ? lines_[i].front().order : others_.top().order;
  }
  void find_first() {
    first_ = front_[0];
    at_ = 0;
    for (std::size_t i = 1; i <= kLines; ++i) {
      if (front_[i] < first_ ||
          (front_[i] == first_ && first_ < Time::max() && order_of(i) < order_of(at_))) {
        first_ = front_[i];
        at_ = i;
      }
    }
  }

  std::array<Line, kLines> lines_;
  FourAryHeap<Entry> others_;
  /// Dates of the first of each line and of the others.
  std::array<Time, kLines + 1> front_ = {Time::max(), Time::max(), Time::max(), Time::max(),
                                         Time::max()};
  std::uint64_t order_ = 0;
  std::size_t size_ = 0;
  Time first_ = Time::max();
  std::size_t at_ = 0;  // where that is
};

}  // namespace lockstep
