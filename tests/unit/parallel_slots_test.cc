#include "simulator/replay/parallel_slots.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::parallel_slots_test {
namespace {

constexpr std::int32_t kRanks = 4;

StepLayout ranks() {
  StepLayout layout;
  layout.graph.place_colour.assign(kRanks, 0);
  layout.graph.capacity.assign(2 * std::size_t{kRanks}, 1e9);  // of each rank: out, then in
  return layout;
}

/// Appends channels of a ring through all ranks, as one collective: a slot waits for the one before
/// it in the ring, which starts at its channel's number.
StepLayout::Unit& add_rings(StepLayout& layout, std::int32_t channels) {
  FlowGraph& graph = layout.graph;
  StepLayout::Unit unit;
  unit.first_slot = static_cast<std::int32_t>(graph.slots.size());
  unit.slots = channels * kRanks;
  for (std::int32_t c = 0; c < channels; ++c) {
    const std::int32_t first = unit.first_slot + c * kRanks;
    for (std::int32_t i = 0; i < kRanks; ++i) {
      FlowGraph::Slot& slot = graph.slots.emplace_back();
      slot.bits = 1e6;
      slot.count = 6;
      slot.source = (c + i) % kRanks;
      slot.destination = (c + i + 1) % kRanks;
      graph.term.push_back({ConstraintId(2 * slot.source), 1});
      graph.term.push_back({ConstraintId(2 * slot.destination + 1), 1});
      graph.term_begin.push_back(static_cast<std::int32_t>(graph.term.size()));
      graph.wait.push_back({first + (i + kRanks - 1) % kRanks, 1});
      graph.wait_begin.push_back(static_cast<std::int32_t>(graph.wait.size()));
    }
  }
  return layout.units.emplace_back(unit);
}

TEST(ParallelSlots, ChannelsInOneOrderAreAlike) {
  StepLayout layout = ranks();
  add_rings(layout, 8);
  const Partition partition = parallel_slots(layout);
  EXPECT_EQ(partition.slot_classes, kRanks);
  EXPECT_EQ(partition.place_classes, kRanks);
  EXPECT_EQ(partition.constraint_classes, 2 * kRanks);
  EXPECT_TRUE(equitable(layout.graph, partition));
  const FlowGraph folded = fold(layout.graph, partition);
  for (std::size_t slot = 0; slot < folded.slots.size(); ++slot) {
    EXPECT_EQ(folded.slots[slot].copies, 8);
    for (const MaxMin::Term& term : folded.terms(slot)) {
      EXPECT_EQ(term.coefficient, 8);
    }
  }
}

TEST(ParallelSlots, WhatIsLargerIsApart) {
  StepLayout layout = ranks();
  add_rings(layout, 3);
  layout.graph.slots[5].bits = 2e6;
  const Partition partition = parallel_slots(layout);
  // Its channel's others wait for it, so that they end up apart as well.
  EXPECT_EQ(partition.slot_classes, 2 * kRanks);
  EXPECT_TRUE(equitable(layout.graph, partition));
}

TEST(ParallelSlots, WhatWaitsForOtherThingsIsApart) {
  StepLayout layout = ranks();
  add_rings(layout, 3);
  layout.graph.wait[kRanks].lag = 2;
  const Partition partition = parallel_slots(layout);
  EXPECT_EQ(partition.slot_classes, 2 * kRanks);
  std::set<std::int32_t> of_the_second;
  for (std::int32_t i = 0; i < kRanks; ++i) {
    of_the_second.insert(partition.slot_class[static_cast<std::size_t>(kRanks + i)]);
  }
  for (std::size_t i = 0; i < 3 * std::size_t{kRanks}; ++i) {
    EXPECT_EQ(of_the_second.contains(partition.slot_class[i]), i / kRanks == 1) << i;
  }
  EXPECT_TRUE(equitable(layout.graph, partition));
}

TEST(ParallelSlots, ThoseOfOtherCollectivesAreApart) {
  StepLayout layout = ranks();
  add_rings(layout, 2);
  add_rings(layout, 2);
  const Partition partition = parallel_slots(layout);
  EXPECT_EQ(partition.slot_classes, 2 * kRanks);
  EXPECT_TRUE(equitable(layout.graph, partition));
}

TEST(ParallelSlots, OtherWaysAreApart) {
  StepLayout layout = ranks();
  add_rings(layout, 2);
  layout.graph.capacity.push_back(1e9);
  layout.graph.term[0].constraint = ConstraintId(2 * kRanks);
  EXPECT_EQ(parallel_slots(layout).slot_classes, 2 * kRanks);
  layout.units[0].first_slot = -1;  // nobody sends
  layout.units[0].slots = 0;
  EXPECT_EQ(parallel_slots(layout).slot_classes, 2 * kRanks);
}

}  // namespace
}  // namespace lockstep::parallel_slots_test
