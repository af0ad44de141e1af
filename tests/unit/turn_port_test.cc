// Ports on which the legs of transfers are alone: turns beside packets served one by one, even
// shares beside a max-min fair network of one constraint.
#include "simulator/network/flow/turn_port.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/even_port.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/port_legs.h"

namespace lockstep::turn_port_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

struct Arrival {
  Time when;
  LegLoad load;
};
/// When each transfer ends, by its number.
using Ends = std::map<std::int32_t, Time>;

template <class Port>
Ends run(const std::vector<Arrival>& arrivals) {
  PortLegs<Port> legs(1);
  Ends ends;
  const auto take_until = [&](Time limit) {
    while (legs.next() < limit) {
      const Time now = legs.next();
      legs.take_ended(now, [&](std::int32_t transfer, std::int32_t) { ends[transfer] = now; });
    }
  };
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    take_until(arrivals[i].when);
    legs.start(0, static_cast<std::int32_t>(i), arrivals[i].load, arrivals[i].when);
  }
  take_until(Time::max());
  return ends;
}

/// Packet by packet: a new sender is the last of the list; after each packet the next in the list
/// is served, and after the last one the first.
Ends packet_by_packet(const std::vector<Arrival>& arrivals) {
  struct Sender {
    std::int32_t number;
    std::int64_t left;
  };
  std::vector<Sender> list;
  Ends ends;
  std::size_t turn = 0, next = 0;
  Time now;
  while (!list.empty() || next < arrivals.size()) {
    if (list.empty()) {
      now = std::max(now, arrivals[next].when);
      turn = 0;
    }
    const auto come = [&](auto has_come) {
      for (; next < arrivals.size() && has_come(arrivals[next].when); ++next) {
        list.push_back({static_cast<std::int32_t>(next), arrivals[next].load.packets});
      }
    };
    come([&](Time when) { return when <= now; });
    turn = turn < list.size() ? turn : 0;
    const LegLoad& load = arrivals[static_cast<std::size_t>(list[turn].number)].load;
    now += --list[turn].left == 0 ? load.last : load.packet;
    come([&](Time when) { return when < now; });
    if (list[turn].left == 0) {
      ends[list[turn].number] = now;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(turn));
    } else {
      ++turn;
    }
  }
  return ends;
}

constexpr Time kPacket = Time::ns(100);

TEST(TurnPort, TwoThatComeHalfAPacketApartEndAPacketApart) {
  const LegLoad three{3, kPacket, kPacket};
  EXPECT_THAT(run<TurnPort>({{Time(), three}, {Time::ns(50), three}}),
              ElementsAre(Pair(0, Time::ns(500)), Pair(1, Time::ns(600))));
  EXPECT_THAT(run<EvenPort>({{Time(), three}, {Time::ns(50), three}}),
              ElementsAre(Pair(0, Time::ns(550)), Pair(1, Time::ns(600))));
}

TEST(TurnPort, AShortLastPacketLetsThemEndNextToEachOther) {
  const LegLoad message{3, kPacket, Time::ns(10)};  // A B A B a b
  EXPECT_THAT(run<TurnPort>({{Time(), message}, {Time::ns(99), message}}),
              ElementsAre(Pair(0, Time::ns(410)), Pair(1, Time::ns(420))));
}

TEST(TurnPort, WhoComesAfterTheFirstRoundIsARoundBehind) {
  const LegLoad two{2, kPacket, kPacket};  // A B A C B C
  EXPECT_THAT(run<TurnPort>({{Time(), two}, {Time(), two}, {Time::ns(201), two}}),
              ElementsAre(Pair(0, Time::ns(300)), Pair(1, Time::ns(400)), Pair(2, Time::ns(600))));
}

TEST(TurnPort, OneSenderAndOnePacket) {
  EXPECT_THAT(run<TurnPort>({{Time::ns(7), {1, kPacket, Time::ps(1)}}}),
              ElementsAre(Pair(0, Time::ns(7) + Time::ps(1))));
}

TEST(TurnPort, StretchesWhatHasNotBegun) {
  PortLegs<TurnPort> legs(2);
  legs.start(1, 0, {3, kPacket, Time::ns(50)}, Time());
  legs.stretch(1, 2, Time::ns(30));  // the first packet goes on; 200 and 100 follow
  EXPECT_EQ(legs.next(), Time::ns(400));
  legs.take_ended(Time::ns(400), [](std::int32_t, std::int32_t port) { EXPECT_EQ(port, 1); });
  EXPECT_EQ(legs.next(), Time::max());
}

TEST(TurnPort, EndsAreThoseOfPackets) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed, "turn port");
    std::vector<Arrival> arrivals;
    const auto spread = static_cast<std::int64_t>(std::uint64_t{1} << rng.below(24));
    for (std::uint64_t i = 1 + rng.below(60); i > 0; --i) {
      arrivals.push_back({Time::ps(rng.between(0, spread)),
                          {rng.between(1, rng.below(2) == 0 ? 3 : 40), kPacket,
                           Time::ps(rng.between(1, kPacket.count_ps()))}});
    }
    std::ranges::stable_sort(arrivals, {}, &Arrival::when);
    ASSERT_EQ(run<TurnPort>(arrivals), packet_by_packet(arrivals)) << "seed " << seed;
  }
}

TEST(EvenPort, EndsAreThoseOfAFairNetwork) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, "even port");
    FluidNetwork network;
    const MaxMin::Term port{network.add_constraint(1e12)};  // a bit takes a picosecond
    std::vector<Arrival> arrivals;
    const auto spread = static_cast<std::int64_t>(std::uint64_t{1} << rng.below(24));
    for (std::uint64_t i = 1 + rng.below(40); i > 0; --i) {
      arrivals.push_back({Time::ps(rng.between(0, spread)),
                          {rng.between(1, 20), kPacket, Time::ps(rng.between(1, 100'000))}});
    }
    std::ranges::stable_sort(arrivals, {}, &Arrival::when);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      network.start(network.connect({&port, 1}),
                    static_cast<double>(arrivals[i].load.whole().count_ps()), Time(),
                    arrivals[i].when, i);
    }
    std::vector<NetworkEvent> events;
    while (!network.idle()) {
      network.advance(Time::max(), events);
    }
    const Ends ends = run<EvenPort>(arrivals);
    for (const NetworkEvent& event : events) {
      // Each end on the way is rounded up to the picosecond in either.
      EXPECT_NEAR(static_cast<double>(ends.at(static_cast<std::int32_t>(event.tag)).count_ps()),
                  static_cast<double>(event.when.count_ps()), 41)
          << "seed " << seed;
    }
  }
}

TEST(EvenPort, StretchesWhatIsLeft) {
  EvenPort port;
  port.start(0, {1, kPacket, Time::ns(100)}, Time());
  port.start(1, {1, kPacket, Time::ns(300)}, Time());
  port.stretch(3, Time::ns(100));  // 50 and 250 are left
  EXPECT_EQ(port.first_end(), Time::ns(400));
  EXPECT_EQ(port.end_first(Time::ns(400)), 0);
  EXPECT_EQ(port.first_end(), Time::ns(1000));
}

}  // namespace
}  // namespace lockstep::turn_port_test
