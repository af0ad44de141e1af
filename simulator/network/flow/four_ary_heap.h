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

  /// pop() and push() in one: for an item that belongs near the top.
  void replace_top(T item) {
    std::size_t hole = 0;
    for (std::size_t least = least_child(0); least != 0; least = least_child(hole)) {
      if (!less_(items_[least], item)) {
        break;
      }
      items_[hole] = std::move(items_[least]);
      hole = least;
    }
    items_[hole] = std::move(item);
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
  /// The least child of a node, or 0 if it has none. Worked out without branches, since nothing
  /// predicts it.
  std::size_t least_child(std::size_t node) const {
    const std::size_t first = 4 * node + 1, size = items_.size();
    if (first + 4 <= size) {
      const std::size_t left = first + less(first + 1, first);
      const std::size_t right = first + 2 + less(first + 3, first + 2);
      return left + (right - left) * less(right, left);
    }
    std::size_t least = first < size ? first : 0;
    for (std::size_t child = first + 1; child < size; ++child) {
      least = less(child, least) != 0 ? child : least;
    }
    return least;
  }

  /// Moves the hole down along the least children to a leaf, then the item up from there: it came
  /// from the bottom and mostly belongs there.
  void sink(const std::size_t top, T item) {
    std::size_t hole = top;
    for (std::size_t least = least_child(hole); least != 0; least = least_child(hole)) {
      items_[hole] = std::move(items_[least]);
      hole = least;
    }
    while (hole > top) {
      const std::size_t parent = (hole - 1) / 4;
      if (!less_(item, items_[parent])) {
        break;
      }
      items_[hole] = std::move(items_[parent]);
      hole = parent;
    }
    items_[hole] = std::move(item);
  }

  /// 1 if item a comes before item b.
  std::size_t less(std::size_t a, std::size_t b) const {
    return static_cast<std::size_t>(less_(items_[a], items_[b]));
  }

  std::vector<T> items_;
  Less less_;
};

}  // namespace lockstep
