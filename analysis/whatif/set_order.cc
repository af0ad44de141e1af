#include <algorithm>

#include "analysis/whatif/numbers.h"

namespace lockstep::whatif {
namespace {

constexpr std::int64_t kFree = -1;

/// CPython's set: open addressing in a table of 2^m slots, probed a few slots in a row and then by
/// a recurrence that brings in the upper bits of the value (Objects/setobject.c, described).
class SetTable {
 public:
  void add(std::int64_t value) {
    if (!insert(slots_, value)) {
      return;
    }
    ++used_;
    if (5 * used_ >= 3 * (slots_.size() - 1)) {
      grow();
    }
  }

  std::vector<std::int64_t> in_order() const {
    std::vector<std::int64_t> out;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(out),
                 [](std::int64_t v) { return v != kFree; });
    return out;
  }

 private:
  /// False if it was there.
  static bool insert(std::vector<std::int64_t>& slots, std::int64_t value) {
    constexpr std::size_t kProbes = 9;
    const std::size_t size = slots.size();
    auto perturb = static_cast<std::size_t>(value);
    std::size_t home = perturb % size;
    for (;;) {
      const std::size_t last = home + kProbes < size ? home + kProbes : home;
      for (std::size_t i = home; i <= last; ++i) {
        if (slots[i] == value) {
          return false;
        }
        if (slots[i] == kFree) {
          slots[i] = value;
          return true;
        }
      }
      perturb >>= 5;
      home = (5 * home + 1 + perturb) % size;
    }
  }

  void grow() {
    constexpr std::size_t kLarge = 50000;
    const std::size_t wanted = used_ > kLarge ? 2 * used_ : 4 * used_;
    std::size_t size = 8;
    while (size <= wanted) {
      size *= 2;
    }
    std::vector<std::int64_t> larger(size, kFree);
    for (const std::int64_t value : slots_) {
      if (value != kFree) {
        insert(larger, value);
      }
    }
    slots_ = std::move(larger);
  }

  std::vector<std::int64_t> slots_ = std::vector<std::int64_t>(8, kFree);
  std::size_t used_ = 0;
};

}  // namespace

std::vector<std::int64_t> python_set_order(std::span<const std::int64_t> values) {
  SetTable table;
  for (const std::int64_t value : values) {
    table.add(value);
  }
  return table.in_order();
}

}  // namespace lockstep::whatif
