// Legs over several ports that meet: the rates of those that change beside a max-min system of all.
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/fabric_legs.h"

namespace lockstep::fabric_legs_property_test {
namespace {

struct Leg {
  Time when;
  std::vector<MaxMin::Term> ports;
  double bits = 0;
};

struct Change {
  Time when;
  std::int32_t port = 0;
  double capacity = 0;
};

struct Case {
  std::vector<double> capacities;
  std::vector<Leg> legs;
  std::vector<Change> changes;
};

Case random_case(std::uint64_t seed) {
  Rng rng(seed, "fabric legs");
  Case one;
  const auto ports = static_cast<std::int32_t>(rng.between(3, 40));
  for (std::int32_t port = 0; port < ports; ++port) {
    one.capacities.push_back(static_cast<double>(rng.between(1, seed % 3 == 0 ? 1 : 4)) * 1e11);
  }
  Time when;
  for (int i = 0; i < 120; ++i) {
    when += rng.below(4) == 0 ? Time() : Time::ps(rng.between(0, 4'000'000));
    Leg leg{when, {}, static_cast<double>(rng.between(1, 2'000'000))};
    std::vector<std::int32_t> all(static_cast<std::size_t>(ports));
    std::iota(all.begin(), all.end(), 0);
    for (std::uint64_t hops = 1 + rng.below(3); hops > 0; --hops) {
      const std::size_t pick = rng.below(all.size());
      leg.ports.push_back({ConstraintId(all[pick]), 1});
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    one.legs.push_back(leg);
    if (rng.below(20) == 0) {
      one.changes.push_back({when + Time::ps(1),
                             static_cast<std::int32_t>(rng.below(one.capacities.size())),
                             static_cast<double>(rng.between(1, 8)) * 5e10});
    }
  }
  return one;
}

struct Outcome {
  std::map<std::int32_t, Time> ends;
  std::vector<double> bits;
};

Outcome run_case(const Case& one, std::int64_t few) {
  FluidNetwork network;
  for (const double capacity : one.capacities) {
    network.add_constraint(capacity);
  }
  FabricLegs legs(network, few);
  Outcome result;
  std::size_t leg = 0, change = 0;
  Time now;
  while (true) {
    Time next = legs.next(now);
    next = leg < one.legs.size() ? std::min(next, one.legs[leg].when) : next;
    next = change < one.changes.size() ? std::min(next, one.changes[change].when) : next;
    if (next == Time::max()) {
      break;
    }
    now = next;
    legs.take_ended(now, [&](std::int32_t transfer) {
      EXPECT_TRUE(result.ends.emplace(transfer, now).second);
    });
    if (change < one.changes.size() && one.changes[change].when == now) {
      (void)legs.next(now);
      legs.set_capacity(ConstraintId(one.changes[change].port), one.changes[change].capacity, now);
      ++change;
    }
    for (; leg < one.legs.size() && one.legs[leg].when == now; ++leg) {
      legs.start(static_cast<std::int32_t>(leg), one.legs[leg].ports, one.legs[leg].bits, 1, now);
    }
  }
  result.bits.resize(one.capacities.size());
  legs.add_bits(now, result.bits);
  return result;
}

TEST(FabricLegs, FewAreAsInTheNetworkOfAll) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case one = random_case(seed);
    const Outcome all = run_case(one, 0);
    ASSERT_EQ(all.ends.size(), one.legs.size());
    for (const std::int64_t few : {std::int64_t{40}, SharedLegs::kMost}) {
      const Outcome some = run_case(one, few);
      ASSERT_EQ(some.ends.size(), one.legs.size()) << seed;
      for (const auto& [transfer, end] : all.ends) {
        // Ends are rounded to the picosecond, and all that comes after them by that much.
        ASSERT_NEAR(static_cast<double>(some.ends.at(transfer).count_ps()),
                    static_cast<double>(end.count_ps()), 200)
            << "seed " << seed << ", leg " << transfer << ", few " << few;
      }
      for (std::size_t port = 0; port < all.bits.size(); ++port) {
        ASSERT_NEAR(some.bits[port], all.bits[port], 1) << seed;
      }
    }
  }
}

TEST(FabricLegs, PartsOfALegGoIntoTheNetwork) {
  FluidNetwork network;
  network.add_constraint(1e11);
  network.add_constraint(1e11);
  FabricLegs legs(network);
  const std::vector<MaxMin::Term> whole = {{ConstraintId(0), 1}};
  const std::vector<MaxMin::Term> halves = {{ConstraintId(0), 0.5}, {ConstraintId(1), 0.5}};
  legs.start(0, whole, 1e6, 1, Time());
  (void)legs.next(Time());
  legs.start(1, halves, 1e6, 1, Time::us(5));  // 2/3 for both: 5 us left of the first take 7.5
  EXPECT_EQ(legs.next(Time::us(5)), Time::us(5));
  std::map<std::int32_t, Time> ends;
  for (Time now = Time::us(5); now < Time::max(); now = legs.next(now)) {
    legs.take_ended(now, [&](std::int32_t transfer) { ends[transfer] = now; });
  }
  EXPECT_NEAR(static_cast<double>(ends.at(0).count_ps()), 12.5e6, 2);
  EXPECT_NEAR(static_cast<double>(ends.at(1).count_ps()), 12.5e6 + 0.5e6 / 2e11 * 1e12, 2);
  std::vector<double> bits(2);
  legs.add_bits(Time::us(100), bits);
  EXPECT_NEAR(bits[0], 1.5e6, 1);
  EXPECT_NEAR(bits[1], 0.5e6, 1);
}

TEST(FabricLegs, OthersShareOfAPort) {
  FluidNetwork network;
  network.add_constraint(1e11);
  for (const std::int64_t few : {std::int64_t{0}, SharedLegs::kMost}) {
    FabricLegs legs(network, few);
    const std::vector<MaxMin::Term> port = {{ConstraintId(0), 1}};
    legs.start(0, port, 1e6, 0.5, Time());
    legs.start(1, port, 2e6, 1, Time());
    legs.start(2, port, 2e6, 1, Time());
    (void)legs.next(Time());
    Time now;
    bool ended = false;
    while (!ended) {
      now = legs.next(now);
      legs.take_ended(now, [&](std::int32_t transfer) {
        EXPECT_EQ(transfer, 0);
        ended = true;
        EXPECT_NEAR(legs.others(ConstraintId(0)).share, 2.0 / 3, 1e-9);  // as until now
        EXPECT_NEAR(legs.others(ConstraintId(0)).packet, 1, 1e-9);
      });
    }
    EXPECT_NEAR(static_cast<double>(now.count_ps()), 30e6, 2);
  }
}

}  // namespace
}  // namespace lockstep::fabric_legs_property_test
