#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep {

/// A priority queue with the smallest element on top, as a heap of four children a node: half the
/// depth of a binary one, and four children share a cache line. push and pop O(log n).
template <class T, class Less = std::less<T>>
class FourAryHeap {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  void clear() { items_.clear(); }
  /// PRECONDITION of top() and pop(): not empty.
  const T& top() const { return items_.front(); }

  void push(T item) {
    std::size_t hole = items_.size();
    items_.push_back(item);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!less_(item, items_[parent])) {
        break;
      }
      items_[hole] = std::move(items_[parent]);
      hole = parent;
    }
    items_[hole] = std::move(item);
  }

  void pop() {
    T last = std::move(items_.back());
    items_.pop_back();
    if (!items_.empty()) {
      sink(0, std::move(last));
    }
  }

  /// Calls f(item) for each, in no order of meaning. f must not change how items compare.
  template <class F>
  void for_each(F f) {
    std::for_each(items_.begin(), items_.end(), f);
  }
  template <class F>
  void for_each(F f) const {
    std::for_each(items_.begin(), items_.end(), f);
  }

  /// Drops every element for which `gone` holds. O(n).
  template <class Predicate>
  void remove_if(Predicate gone) {
    std::erase_if(items_, gone);
    for (std::size_t i = items_.size() / 4 + 1; i-- > 0;) {
      if (i < items_.size()) {
        sink(i, std::move(items_[i]));
      }
    }
  }

 private:
  void sink(std::size_t hole, T item) {
    while (true) {
      const std::size_t first = 4 * hole + 1;
      if (first >= items_.size()) {
        break;
      }
      const std::size_t end = std::min(first + 4, items_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (less_(items_[child], items_[least])) {
          least = child;
        }
      }
      if (!less_(items_[least], item)) {
        break;
      }
      items_[hole] = std::move(items_[least]);
      hole = least;
    }
    items_[hole] = std::move(item);
  }

  std::vector<T> items_;
  Less less_;
};

}  // namespace lockstep
