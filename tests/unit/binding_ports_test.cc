#include "simulator/network/flow/binding_ports.h"

#include <gtest/gtest.h>

#include "simulator/network/flow/fluid_network.h"

namespace lockstep::binding_ports_test {
namespace {

constexpr double kUnit = 1 / FluidNetwork::kRateUnits;  // bits per second

/// Two ports that lead to a third one; whether that counts.
bool third_binds(double first, double second, double third) {
  BindingPorts ports({first, second, third});
  ports.cross({{ConstraintId(0), 1}, {ConstraintId(2), 1}}, 1);
  ports.cross({{ConstraintId(1), 1}, {ConstraintId(2), 1}}, 1);
  return ports.binds(2);
}

TEST(BindingPorts, WhatTakesAllThatReachesItIsSpared) {
  EXPECT_FALSE(third_binds(1e9, 1e9, 2e9));
  EXPECT_TRUE(third_binds(1e9, 1e9, 1.5e9));
}

// Two ports of 10.5 units count as 11 each, and the one that just takes both as 21: it is fuller by
// a unit. Found by a random step that ended 4 ps later when it was left out.
TEST(BindingPorts, CapacitiesAreWholeUnits) {
  EXPECT_TRUE(third_binds(10.5 * kUnit, 10.5 * kUnit, 21 * kUnit));
  EXPECT_FALSE(third_binds(10.25 * kUnit, 10.25 * kUnit, 20.5 * kUnit));
  BindingPorts ports({11 * kUnit, 11 * kUnit, 22 * kUnit});
  ports.cross({{ConstraintId(0), 1}, {ConstraintId(2), 1}}, 1);
  ports.cross({{ConstraintId(1), 1}, {ConstraintId(2), 1}}, 1);
  EXPECT_FALSE(ports.binds(2));
  EXPECT_EQ(ports.set_capacity(2, 21.25 * kUnit).size(), 1U);
  EXPECT_TRUE(ports.binds(2));
}

TEST(BindingPorts, WhereFlowsBeginCounts) {
  BindingPorts ports({1e9, 1e9});
  EXPECT_TRUE(ports.cross({{ConstraintId(0), 1}}, 0));
  EXPECT_TRUE(ports.cross({{ConstraintId(0), 1}, {ConstraintId(1), 0.5}}, 1));
}

}  // namespace
}  // namespace lockstep::binding_ports_test
