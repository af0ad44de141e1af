// What a long simulation has behind it takes no memory: collectives of an island that never rests,
// and deliveries that were foretold.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/replay/island_simulation.h"

namespace lockstep::bounded_memory_test {
namespace {

/// One transfer of 1 Mbit from place 0 to place 1 over a constraint of 1 Tb/s: 1 us.
CommunicatorShape one_transfer() {
  CommunicatorShape shape;
  shape.capacity = {1e12};
  CommunicatorShape::Slot slot;
  slot.bits = 1e6;
  slot.count = slot.leave = slot.reach = 1;
  slot.source = 0;
  slot.destination = 1;
  shape.slots = {slot};
  shape.term_begin = {0, 1};
  shape.term = {{ConstraintId(0), 1.0}};
  shape.wait_begin = {0, 0};
  shape.shares = {1, 1};
  shape.waiter_begin = {0, 0};
  shape.from_begin = {0, 1, 1};
  shape.from = {0};
  return shape;
}

TEST(BoundedMemory, CollectivesThatAreOverAreForgottenAndOthersGoOn) {
  const CommunicatorShape shape = one_transfer();
  IslandSimulation island;
  const std::vector<std::int32_t> names = {0};
  island.add(shape, names);
  island.begin(Time());
  std::vector<IslandSimulation::Finish> finished;
  std::vector<std::int32_t> over;
  for (std::int32_t run = 0; run < 100; ++run) {
    const Time now = Time::us(10 * run);
    island.advance(now, finished);
    EXPECT_EQ(island.open(0), run);
    island.enter(run, 0, now);
    finished.clear();
    island.advance(now + Time::ns(500), finished);
    over.clear();
    island.forget_over(over);
    EXPECT_TRUE(over.empty()) << "half of it has left";
    island.enter(run, 1, now + Time::ns(500));
    island.advance(now + Time::us(1) - Time::ps(1), finished);
    EXPECT_TRUE(finished.empty());
    island.advance(now + Time::us(1), finished);
    ASSERT_EQ(finished.size(), 2U);
    EXPECT_EQ(finished[0].run, run);
    island.forget_over(over);
    EXPECT_EQ(over, std::vector<std::int32_t>{run});
  }
}

TEST(BoundedMemory, DeliveriesAreForetoldOnlyForTheNextMoments) {
  FluidNetwork network;
  const ConstraintId wire = network.add_constraint(1e12);
  const std::vector<MaxMin::Term> terms = {{wire, 1.0}};
  std::vector<ConnectionId> connections;
  for (int i = 0; i < 64; ++i) {
    connections.push_back(network.connect(terms));
  }
  std::vector<NetworkEvent> events;
  std::size_t most = 0, foretold = 0;
  for (std::uint64_t round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < connections.size(); ++i) {
      network.start(connections[i], 1e6 + 1e3 * static_cast<double>(i), Time::us(3), network.now(),
                    round);
    }
    do {
      events.clear();
      network.advance(Time::max(), events);
      most = std::max(most, network.coming().size());
      foretold += network.coming().size();
    } while (!events.empty());
  }
  EXPECT_GT(foretold, 1000U);
  EXPECT_LE(most, connections.size());
}

}  // namespace
}  // namespace lockstep::bounded_memory_test
