#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lockstep {

/// Sets that grow together (union-find with path halving).
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) {
      i = parent_[i] = parent_[parent_[i]];
    }
    return i;
  }
  /// The lower root stays, so that a set is named by its first member.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  /// Numbers the sets in order of their first members.
  std::vector<std::int32_t> numbers() {
    std::vector<std::int32_t> number(parent_.size(), -1);
    std::int32_t next = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      const std::size_t root = find(i);  // not after i
      number[i] = root == i ? next++ : number[root];
    }
    return number;
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace lockstep
