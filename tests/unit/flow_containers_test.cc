#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/four_ary_heap.h"
#include "simulator/network/flow/stamp_queue.h"

namespace lockstep {
namespace {

TEST(FourAryHeap, PopsInOrderAlsoAfterRemoval) {
  Rng rng(1, "heap");
  for (std::size_t size = 0; size < 70; ++size) {
    FourAryHeap<std::uint64_t> heap;
    std::vector<std::uint64_t> expected;
    for (std::size_t i = 0; i < size; ++i) {
      expected.push_back(rng.below(40));
      heap.push(expected.back());
    }
    const auto gone = [](std::uint64_t x) { return x % 3 == 0; };
    if (size % 2 == 1) {
      heap.remove_if(gone);
      std::erase_if(expected, gone);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<std::uint64_t> popped;
    for (; !heap.empty(); heap.pop()) {
      popped.push_back(heap.top());
    }
    EXPECT_EQ(popped, expected);
  }
}

TEST(StampQueue, GivesDatesInOrderAndItemsOfADateInOrderOfEntry) {
  // More dates than it remembers, so that some dates get several buckets.
  Rng rng(1, "stamps");
  StampQueue<std::uint64_t> queue;
  std::vector<std::pair<Time, std::uint64_t>> expected;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const Time when = Time::ps(rng.between(0, 1500));
    queue.push(when, i);
    expected.emplace_back(when, i);
  }
  EXPECT_EQ(queue.size(), 5000U);
  std::ranges::stable_sort(expected, {}, &std::pair<Time, std::uint64_t>::first);
  queue.shift(Time::us(1));
  std::vector<std::pair<Time, std::uint64_t>> popped;
  std::vector<std::uint64_t> items;
  while (!queue.empty()) {
    const Time when = queue.first();
    items.clear();
    queue.pop(items);
    for (const std::uint64_t item : items) {
      popped.emplace_back(when - Time::us(1), item);
    }
  }
  EXPECT_EQ(popped, expected);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(ConnectionTable, KeepsANumberForEachTriple) {
  ConnectionTable table;
  const auto number = [](std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::uint32_t>(1 + a * 10'000 + b * 100 + c);
  };
  for (const bool write : {true, false}) {
    for (std::int32_t a = 0; a < 30; ++a) {
      for (std::int32_t b = 0; b < 30; ++b) {
        for (std::int32_t c = 0; c < 4; ++c) {
          std::uint32_t& value = table(NodeId(a), NodeId(b), c);
          ASSERT_EQ(value, write ? 0 : number(a, b, c));
          value = number(a, b, c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
