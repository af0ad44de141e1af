#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "simulator/network/flow/four_ary_heap.h"

namespace lockstep {

/// Items by date, those of one date together: a collective's flows start and end by the thousand in
/// one picosecond, and only the first of them pays for the heap. Items of a date come out in the
/// order in which they went in.
///
/// push is O(1) where the date was pushed lately, else O(log dates); memory is kept for reuse.
template <class T>
class StampQueue {
 public:
  bool empty() const { return dates_.empty(); }
  /// Items in it.
  std::size_t size() const { return size_; }
  /// PRECONDITION: not empty.
  Time first() const { return dates_.top().when; }

  void push(Time when, const T& item) {
    ++size_;
    Recent& recent = recent_[slot(when)];
    if (recent.bucket < 0 || recent.when != when) {
      recent = {when, new_bucket()};
      dates_.push({when, next_order_++, recent.bucket});
    }
    buckets_[static_cast<std::size_t>(recent.bucket)].push_back(item);
  }

  /// Moves the items of the first date to the end of `items`. PRECONDITION: not empty.
  void pop(std::vector<T>& items) {
    const Time when = first();
    while (!dates_.empty() && dates_.top().when == when) {
      const std::int32_t index = dates_.top().bucket;
      std::vector<T>& bucket = buckets_[static_cast<std::size_t>(index)];
      items.insert(items.end(), bucket.begin(), bucket.end());
      size_ -= bucket.size();
      bucket.clear();
      free_.push_back(index);
      dates_.pop();
    }
    Recent& recent = recent_[slot(when)];
    if (recent.when == when) {
      recent.bucket = -1;
    }
  }

  /// Calls f(date, item) for each, in no order of meaning. O(size).
  template <class F>
  void for_each(F f) const {
    dates_.for_each([&](const Date& date) {
      for (const T& item : buckets_[static_cast<std::size_t>(date.bucket)]) {
        f(date.when, item);
      }
    });
  }

  /// Moves every date. O(dates).
  void shift(Time by) {
    dates_.for_each([&](Date& date) { date.when += by; });
    recent_ = {};
  }

  /// Drops every item for which `gone` holds; dates may stay without items. O(size).
  template <class Predicate>
  void remove_if(Predicate gone) {
    size_ = 0;
    for (std::vector<T>& bucket : buckets_) {
      std::erase_if(bucket, gone);
      size_ += bucket.size();
    }
  }

 private:
  struct Date {
    Time when;
    std::uint64_t order;
    std::int32_t bucket;
    friend auto operator<=>(const Date&, const Date&) = default;
  };
  struct Recent {
    Time when;
    std::int32_t bucket = -1;
  };
  static constexpr std::size_t kRecent = 256;

  static std::size_t slot(Time when) {
    const auto hash = static_cast<std::uint64_t>(when.count_ps()) * 0x9E3779B97F4A7C15U;
    return hash >> 56;
  }
  std::int32_t new_bucket() {
    if (free_.empty()) {
      buckets_.emplace_back();
      return static_cast<std::int32_t>(buckets_.size()) - 1;
    }
    const std::int32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  FourAryHeap<Date> dates_;
  std::vector<std::vector<T>> buckets_;
  std::vector<std::int32_t> free_;
  std::array<Recent, kRecent> recent_;
  std::uint64_t next_order_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lockstep
