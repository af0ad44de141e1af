// Collectives that are told from LoneTimes end when they do by events, to the picosecond: rings
// that follow each other on the same constraints, entered at random times, with single transfers
// that cross some of their constraints now and then.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/index.h"
#include "base/rng.h"
#include "simulator/replay/island_simulation.h"
#include "simulator/replay/lone_times.h"

namespace lockstep::lone_times_property_test {
namespace {

/// Fills what follows from slots, waits and places.
void index(CommunicatorShape& shape) {
  const auto rows = [](std::size_t count, auto pairs, std::vector<std::int32_t>& begin,
                       std::vector<std::int32_t>& values) {
    std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return pair.first; });
    begin.assign(count + 1, 0);
    for (const auto& [row, value] : pairs) {
      ++begin[at(row) + 1];
      values.push_back(value);
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
  };
  std::vector<std::pair<std::int32_t, std::int32_t>> waiters, from;
  for (std::size_t i = 0; i < shape.slots.size(); ++i) {
    CommunicatorShape::Slot& slot = shape.slots[i];
    slot.leave = slot.reach = 1;
    shape.shares[at(slot.source)] += slot.count;
    shape.shares[at(slot.destination)] += slot.count;
    from.emplace_back(slot.source, static_cast<std::int32_t>(i));
    for (const SlotWait& wait : shape.waits(i)) {
      waiters.emplace_back(wait.slot, static_cast<std::int32_t>(i));
    }
  }
  rows(shape.slots.size(), waiters, shape.waiter_begin, shape.waiter);
  rows(shape.shares.size(), from, shape.from_begin, shape.from);
}

/// Place i sends to i + 1 over constraints 2 i and 2 i + 1 what it has received before.
CommunicatorShape ring(std::int32_t places, std::int32_t lag, double bits, Rng& rng) {
  CommunicatorShape shape;
  shape.shares.assign(at(places), 0);
  const std::int32_t count = lag * (places - 1);
  for (std::int32_t i = 0; i < places; ++i) {
    shape.slots.push_back({.bits = bits,
                           .latency = Time::ns(rng.between(0, 900)),
                           .start_latency = Time::ns(rng.between(0, 3000)),
                           .forward_latency = Time::ns(rng.between(0, 3000)),
                           .count = count,
                           .source = i,
                           .destination = (i + 1) % places});
    for (std::int32_t c = 2 * i; c < 2 * i + 2; ++c) {
      shape.capacity.push_back(4e11);
      shape.term.push_back({ConstraintId(c), 1});
    }
    shape.term_begin.push_back(static_cast<std::int32_t>(shape.term.size()));
    shape.wait.push_back({(i + places - 1) % places, lag});
    shape.wait_begin.push_back(static_cast<std::int32_t>(shape.wait.size()));
  }
  index(shape);
  return shape;
}

/// One transfer over two constraints, 0 and 1.
CommunicatorShape pair_of(double bits) {
  CommunicatorShape shape;
  shape.shares.assign(2, 0);
  shape.capacity = {4e11, 4e11};
  shape.slots.push_back({.bits = bits,
                         .latency = Time::ns(500),
                         .start_latency = Time::ns(600),
                         .count = 1,
                         .source = 0,
                         .destination = 1});
  shape.term = {{ConstraintId(0), 1}, {ConstraintId(1), 1}};
  shape.term_begin.push_back(2);
  shape.wait_begin.push_back(0);
  index(shape);
  return shape;
}

struct Entry {
  Time when;
  std::int32_t communicator, sequence, place;
  auto operator<=>(const Entry&) const = default;
};

/// What a run of the situation needs: communicators, what of theirs is entered when (of rings the
/// first collective only), and how long a place waits before it enters the next.
struct Situation {
  std::vector<CommunicatorShape> shapes;
  std::vector<std::vector<std::int32_t>> constraints;
  std::vector<Entry> entries;
  std::int32_t rings = 0, rounds = 0;
  Time pause;
};

using Ends = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Time>;

/// Rings take turns: a place that has finished a round's collective enters the next round's.
Ends run(const Situation& what, bool told, std::int64_t& lone_runs) {
  IslandSimulation simulation;
  std::vector<std::unique_ptr<LoneTimes>> lone;
  simulation.begin(Time());
  for (std::size_t c = 0; c < what.shapes.size(); ++c) {
    lone.push_back(told ? LoneTimes::of(what.shapes[c]) : nullptr);
    lone_runs += lone.back() ? 1 : 0;
    simulation.add(what.shapes[c], what.constraints[c], lone.back().get());
  }
  std::vector<Entry> entries = what.entries;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> number;
  std::vector<std::pair<std::int32_t, std::int32_t>> run_of;
  std::vector<IslandSimulation::Finish> finished;
  Ends ends;
  for (;;) {
    std::ranges::sort(entries, std::greater<>());
    const Time next =
        std::min(simulation.next(), entries.empty() ? Time::max() : entries.back().when);
    if (next == Time::max()) {
      return ends;
    }
    finished.clear();
    simulation.advance(next, finished);
    for (const auto& [run, place] : finished) {
      const auto [communicator, sequence] = run_of[at(run)];
      const bool is_new = ends.emplace(std::tuple(communicator, sequence, place), next).second;
      EXPECT_TRUE(is_new) << "place " << place << " finishes twice";
      if (communicator < what.rings && sequence + 1 < what.rounds) {
        entries.push_back(
            {next + what.pause, (communicator + 1) % what.rings, sequence + 1, place});
      }
    }
    if (!finished.empty()) {
      continue;
    }
    while (!entries.empty() && entries.back().when == next) {
      const Entry entry = entries.back();
      entries.pop_back();
      const auto [known, is_new] = number.try_emplace({entry.communicator, entry.sequence}, 0);
      if (is_new) {
        known->second = simulation.open(entry.communicator);
        run_of.emplace_back(entry.communicator, entry.sequence);
      }
      simulation.enter(known->second, entry.place, next);
    }
  }
}

TEST(LoneTimesProperty, ToldCollectivesEndAsSimulatedOnes) {
  std::int64_t lone_runs = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, "lone-times");
    Situation what;
    const auto places = static_cast<std::int32_t>(rng.between(8, 20));
    what.rings = static_cast<std::int32_t>(rng.between(1, 3));
    what.rounds = static_cast<std::int32_t>(rng.between(1, 6));
    what.pause = Time::ns(rng.between(0, 1) * rng.between(0, 50'000));
    std::vector<std::int32_t> all(at(2 * places));
    std::iota(all.begin(), all.end(), 0);
    for (std::int32_t i = 0; i < what.rings; ++i) {
      const auto lag = static_cast<std::int32_t>(rng.between(1, 4));
      what.shapes.push_back(
          ring(places, lag, static_cast<double>(rng.between(1'000'000, 9'000'000)), rng));
      what.constraints.push_back(all);
    }
    for (std::int32_t place = 0; place < places; ++place) {
      what.entries.push_back({Time::ns(rng.between(0, 200'000)), 0, 0, place});
    }
    if (rng.below(2) == 0) {  // one is late by more than what the others can do without it
      what.entries[rng.below(what.entries.size())].when += Time::us(20'000);
    }
    for (std::int64_t pairs = rng.between(0, 6); pairs > 0; --pairs) {
      const auto communicator = static_cast<std::int32_t>(what.shapes.size());
      what.shapes.push_back(pair_of(static_cast<double>(rng.between(1000, 90'000'000))));
      // A sender's port and a receiver's.
      what.constraints.push_back({static_cast<std::int32_t>(2 * rng.between(0, places - 1)),
                                  static_cast<std::int32_t>(2 * rng.between(0, places - 1) + 1)});
      const Time when = Time::ns(rng.between(0, 25'000'000));
      what.entries.push_back({when, communicator, 0, 0});
      what.entries.push_back({when, communicator, 0, 1});
    }
    const Ends told = run(what, true, lone_runs), simulated = run(what, false, without);
    EXPECT_EQ(told, simulated) << "seed " << seed;
    EXPECT_GE(told.size(), at(places * what.rounds)) << "seed " << seed;
  }
  EXPECT_GE(lone_runs, 60);
  EXPECT_EQ(without, 0);
}

TEST(LoneTimes, AreThoseOfRingsOnTheirOwnConstraints) {
  Rng rng(1, "lone-times/kinds");
  EXPECT_NE(LoneTimes::of(ring(16, 2, 1e6, rng)), nullptr);
  EXPECT_EQ(LoneTimes::of(pair_of(1e6)), nullptr);  // the sender does not wait for the receiver
  CommunicatorShape shared = ring(16, 2, 1e6, rng);
  shared.term.back().constraint = ConstraintId(0);
  EXPECT_EQ(LoneTimes::of(shared), nullptr);
  CommunicatorShape brief = ring(16, 2, 1e6, rng);
  for (CommunicatorShape::Slot& slot : brief.slots) {
    slot.count = 10;  // some ranks are through before others come
  }
  EXPECT_EQ(LoneTimes::of(brief), nullptr);
}

}  // namespace
}  // namespace lockstep::lone_times_property_test
