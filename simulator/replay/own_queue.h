#pragma once

#include <cstddef>
#include <vector>

#include "simulator/network/flow/four_ary_heap.h"
#include "simulator/replay/replay_rank.h"

namespace lockstep {

/// Ranks' own events to come, by time and then by order. Those for this very moment, of which there
/// are many, wait in a row; the others in a heap.
class OwnQueue {
 public:
  bool empty() const { return heap_.empty() && first_ == row_.size(); }
  /// PRECONDITION of top() and pop(): not empty.
  const OwnEvent& top() const { return row_is_first() ? row_[first_] : heap_.top(); }
  void pop() {
    if (!row_is_first()) {
      heap_.pop();
    } else if (++first_ == row_.size()) {
      row_.clear();
      first_ = 0;
    }
  }
  void push(const OwnEvent& event, Time now) {
    if (event.when == now && (row_.empty() || event > row_.back())) {
      row_.push_back(event);
    } else {
      heap_.push(event);
    }
  }
  /// In no order of meaning.
  template <class F>
  void for_each(F f) const {
    heap_.for_each(f);
    for (std::size_t i = first_; i < row_.size(); ++i) {
      f(row_[i]);
    }
  }
  /// Lets f(event) change each of them.
  template <class F>
  void change(F f) {
    std::vector<OwnEvent> all;
    for_each([&](const OwnEvent& event) { all.push_back(event); });
    heap_.clear();
    row_.clear();
    first_ = 0;
    for (OwnEvent& event : all) {
      f(event);
      heap_.push(event);
    }
  }

 private:
  struct Sooner {
    bool operator()(const OwnEvent& a, const OwnEvent& b) const { return b > a; }
  };
  bool row_is_first() const {
    return first_ < row_.size() && (heap_.empty() || heap_.top() > row_[first_]);
  }

  FourAryHeap<OwnEvent, Sooner> heap_;
  std::vector<OwnEvent> row_;  // from first_ on
  std::size_t first_ = 0;
};

}  // namespace lockstep
