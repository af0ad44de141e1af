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

  void push(Time when, const T& item) {
    ++size_;
    first_ = std::min(first_, when);
    const Entry entry{when, order_++, item};
    for (Line& line : lines_) {
      if (line.empty() || line.entries.back().when <= when) {
        line.entries.push_back(entry);
        return;
      }
    }
    others_.push(entry);
  }

  /// Takes the first. PRECONDITION: not empty.
  T pop() {
    Line* first = nullptr;
    for (Line& line : lines_) {
      if (!line.empty() && (first == nullptr || line.front() < first->front())) {
        first = &line;
      }
    }
    --size_;
    const bool is_other = !others_.empty() && (first == nullptr || others_.top() < first->front());
    const T item = is_other ? others_.top().item : first->front().item;
    is_other ? others_.pop() : first->pop();
    first_ = others_.empty() ? Time::max() : others_.top().when;
    for (const Line& line : lines_) {
      first_ = line.empty() ? first_ : std::min(first_, line.front().when);
    }
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

  std::array<Line, 4> lines_;
  FourAryHeap<Entry> others_;
  std::uint64_t order_ = 0;
  std::size_t size_ = 0;
  Time first_ = Time::max();
};

}  // namespace lockstep
