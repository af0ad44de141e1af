#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "simulator/network/flow/give_back.h"

namespace lockstep {

/// Items by date, for clocks that never go back: what is pushed may not lie before what was popped
/// last. Items of a date come out together, in the order in which they went in.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem,
/// 1990): bucket b holds what differs from the last date popped in bit b - 1 and in none above, so
/// the first date is in the lowest bucket that is not empty, which a pop spreads over those below.
/// All that is done runs along arrays; nothing is compared pairwise. A collective's flows, which
/// start and end by the thousand in one picosecond, move once or twice.
///
/// push O(1); an item moves at most once for each bit of the time that it is ahead of the clock, on
/// average half of that, and not at all below the bits in which dates differ. Memory is kept for
/// reuse.
template <class T>
class StampQueue {
 public:
  bool empty() const { return size_ == 0; }
  /// Items in it.
  std::size_t size() const { return size_; }
  /// PRECONDITION: not empty.
  Time first() const { return first_[lowest()]; }

  /// PRECONDITION: `when` is not before the date popped last.
  void push(Time when, const T& item) {
    ++size_;
    put(when, item);
  }

  /// Moves the items of the first date to the end of `items`. PRECONDITION: not empty.
  void pop(std::vector<T>& items) {
    pop(items, [](const T&) {});
  }
  /// The same; calls near(item) for some of those that are to come soon, whose memory may be asked
  /// for.
  template <class Near>
  void pop(std::vector<T>& items, Near near) {
    const std::size_t lowest_bucket = lowest();
    std::vector<Entry>& bucket = buckets_[lowest_bucket];
    last_ = first_[lowest_bucket];
    filled_ &= ~(std::uint64_t{1} << lowest_bucket);
    const std::size_t before = items.size();
    const bool few = bucket.size() <= kNear;
    for (const Entry& entry : bucket) {  // others go to lower buckets, so this one stays as it is
      if (entry.when == last_) {
        items.push_back(entry.item);
      } else {
        put(entry.when, entry.item);
        if (few) {
          near(entry.item);
        }
      }
    }
    give_back(bucket);
    size_ -= items.size() - before;
  }

  /// Calls f(date, item) for each, in no order of meaning. O(size).
  template <class F>
  void for_each(F f) const {
    for (const std::vector<Entry>& bucket : buckets_) {
      for (const Entry& entry : bucket) {
        f(entry.when, entry.item);
      }
    }
  }

  /// Moves every date, and the clock. O(size).
  void shift(Time by) {
    last_ += by;
    refill([&](Entry& entry) {
      entry.when += by;
      return true;
    });
  }

  /// Drops every item for which `gone` holds. O(size).
  template <class Predicate>
  void remove_if(Predicate gone) {
    refill([&](const Entry& entry) { return !gone(entry.item); });
  }

 private:
  struct Entry {
    Time when;
    T item;
  };
  static constexpr std::size_t kBuckets = 64;
  static constexpr std::size_t kNear = 32;  ///< items whose memory stays at hand until they come

  std::size_t lowest() const { return static_cast<std::size_t>(std::countr_zero(filled_)); }

  void put(Time when, const T& item) {
    const auto differing = static_cast<std::uint64_t>(when.count_ps() ^ last_.count_ps());
    const auto b = static_cast<std::size_t>(std::bit_width(differing));
    const std::uint64_t bit = std::uint64_t{1} << b;
    first_[b] = (filled_ & bit) == 0 ? when : std::min(first_[b], when);
    filled_ |= bit;
    buckets_[b].push_back({when, item});
  }

  /// Takes everything out and puts back what keep(entry), which may change it, returns true for.
  template <class Keep>
  void refill(Keep keep) {
    spare_.clear();
    for (std::vector<Entry>& bucket : buckets_) {
      spare_.insert(spare_.end(), bucket.begin(), bucket.end());
      bucket.clear();
    }
    size_ = filled_ = 0;
    for (Entry& entry : spare_) {
      if (keep(entry)) {
        push(entry.when, entry.item);
      }
    }
  }

  std::array<std::vector<Entry>, kBuckets> buckets_;
  std::array<Time, kBuckets> first_{};  ///< of each bucket that is not empty
  std::uint64_t filled_ = 0;            ///< a bit for each
  Time last_;                           ///< popped last
  std::vector<Entry> spare_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
