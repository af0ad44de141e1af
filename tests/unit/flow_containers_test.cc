#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/delay_queue.h"
#include "simulator/network/flow/four_ary_heap.h"
#include "simulator/network/flow/next_of.h"
#include "simulator/network/flow/stamp_queue.h"

namespace lockstep::flow_containers_test {
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

TEST(StampQueue, IsAMultimapForAClockThatNeverGoesBack) {
  // Against std::multimap, which too keeps equal keys in order of entry: pushes from now to far
  // ahead (up to the clock's end), shifts, removals, and pushes at the present moment after its
  // pop.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, "stamps/clock");
    StampQueue<std::uint64_t> queue;
    std::multimap<Time, std::uint64_t> model;
    Time now;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      switch (rng.below(8)) {
        default: {
          const std::int64_t ahead = std::int64_t{1} << rng.below(rng.below(50) == 0 ? 62 : 24);
          const Time room = Time::max() - now;
          const Time when = now + std::min(room, Time::ps(rng.between(0, ahead)));
          queue.push(when, i);
          model.emplace(when, i);
          break;
        }
        case 6:
        case 7: {
          std::vector<std::uint64_t> items, expected;
          if (!model.empty() && model.begin()->first < Time::max()) {
            now = model.begin()->first;
            ASSERT_EQ(queue.first(), now);
            queue.pop(items);
            const auto end = model.upper_bound(now);
            std::transform(model.begin(), end, std::back_inserter(expected),
                           [](const auto& entry) { return entry.second; });
            model.erase(model.begin(), end);
          }
          ASSERT_EQ(items, expected);
          break;
        }
        case 5:
          if (rng.below(20) == 0) {
            const auto gone = [&](std::uint64_t item) { return item % 3 == 0; };
            queue.remove_if(gone);
            std::erase_if(model, [&](const auto& entry) { return gone(entry.second); });
          } else if (rng.below(20) == 0 &&
                     (model.empty() || model.rbegin()->first < Time::us(1000))) {
            const Time by = Time::ps(rng.between(0, 1'000'000));
            queue.shift(by);
            std::multimap<Time, std::uint64_t> moved;
            for (const auto& [when, item] : model) {
              moved.emplace(when + by, item);
            }
            model.swap(moved);
            now += by;
          }
          break;
      }
      ASSERT_EQ(queue.size(), model.size());
      ASSERT_EQ(queue.empty(), model.empty());
    }
  }
}

TEST(DelayQueue, GivesDatesInOrderAndItemsOfADateInOrderOfEntry) {
  // Against std::multimap: most pushes a constant while ahead, of more kinds than there are lines,
  // and a few at random.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, "delays");
    DelayQueue<std::uint64_t> queue;
    std::multimap<Time, std::uint64_t> model;
    Time now;
    for (std::uint64_t i = 0; i < 5000; ++i) {
      if (rng.below(100) < 52) {
        const Time ahead =
            rng.below(10) == 0 ? Time::ps(rng.between(0, 1000)) : Time::ps(100) * rng.between(0, 5);
        queue.push(now + ahead, i);
        model.emplace(now + ahead, i);
      } else if (!model.empty()) {
        now = model.begin()->first;
        ASSERT_EQ(queue.first(), now);
        ASSERT_EQ(queue.pop(), model.begin()->second);
        model.erase(model.begin());
      }
      ASSERT_EQ(queue.size(), model.size());
      ASSERT_EQ(queue.empty(), model.empty());
      ASSERT_EQ(queue.first(), model.empty() ? Time::max() : model.begin()->first);
    }
  }
}

TEST(NextOf, IsTheLeast) {
  Rng rng(3, "next of");
  NextOf next;
  std::vector<Time> dates;
  EXPECT_EQ(next.first(), Time::max());
  for (int i = 0; i < 20000; ++i) {
    if (dates.empty() || rng.below(static_cast<std::uint64_t>(dates.size() * dates.size())) == 0) {
      ASSERT_EQ(next.add(), std::ssize(dates));
      dates.push_back(Time::max());
    }
    const auto which = rng.below(dates.size());
    dates[which] = rng.below(4) == 0 ? Time::max() : Time::ps(rng.between(0, 50));
    next.set(static_cast<std::int32_t>(which), dates[which]);
    const auto least = std::ranges::min_element(dates);
    ASSERT_EQ(next.first(), *least);
    if (*least < Time::max()) {
      ASSERT_EQ(next.which(), least - dates.begin());
    }
  }
  EXPECT_GT(dates.size(), 30U);  // two rounds
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
}  // namespace lockstep::flow_containers_test
