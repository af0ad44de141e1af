#include "simulator/network/flow/max_min.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep::max_min_test {
namespace {

ConstraintId c(int i) { return ConstraintId(i); }

/// A system with the given capacities.
MaxMin with_capacities(std::initializer_list<double> capacities) {
  MaxMin system;
  for (const double capacity : capacities) {
    system.add_constraint(capacity);
  }
  return system;
}

VariableId add(MaxMin& system, std::vector<MaxMin::Term> terms, double bound = MaxMin::kUnbounded) {
  return system.add_variable(terms, bound);
}

TEST(MaxMin, SharesOneConstraintEvenly) {
  // x + y + z <= 12: 4 each.
  MaxMin system = with_capacities({12});
  const VariableId x = add(system, {{c(0)}}), y = add(system, {{c(0)}}), z = add(system, {{c(0)}});
  EXPECT_EQ(system.solve().size(), 3U);
  EXPECT_EQ(system.rate(x), 4);
  EXPECT_EQ(system.rate(y), 4);
  EXPECT_EQ(system.rate(z), 4);
}

TEST(MaxMin, SolvesTheExampleOfTheHeader) {
  // x0 + x1 <= 10, x1 + 2 x2 <= 9: x1 = x2 = 9/3, x0 = 10 - 3.
  MaxMin system = with_capacities({10, 9});
  const VariableId x0 = add(system, {{c(0)}});
  const VariableId x1 = add(system, {{c(0)}, {c(1)}});
  const VariableId x2 = add(system, {{c(1), 2}});
  system.solve();
  EXPECT_EQ(system.rate(x0), 7);
  EXPECT_EQ(system.rate(x1), 3);
  EXPECT_EQ(system.rate(x2), 3);
}

TEST(MaxMin, ParkingLot) {
  // Three hops of 6; one long variable over all, one short on each: every hop has two, 3 each.
  MaxMin system = with_capacities({6, 6, 6});
  const VariableId all = add(system, {{c(0)}, {c(1)}, {c(2)}});
  std::vector<VariableId> shorts;
  for (int i = 0; i < 3; ++i) {
    shorts.push_back(add(system, {{c(i)}}));
  }
  system.solve();
  EXPECT_EQ(system.rate(all), 3);
  for (const VariableId v : shorts) {
    EXPECT_EQ(system.rate(v), 3);
  }
}

TEST(MaxMin, UnequalCapacitiesFillInOrder) {
  // c0: a + b <= 4, c1: b + d <= 10, c2: d + e <= 20.
  // c0 fills first at 2: a = b = 2. Then c1 leaves 8 to d alone, c2 leaves 20 - 8 = 12 to e.
  MaxMin system = with_capacities({4, 10, 20});
  const VariableId a = add(system, {{c(0)}}), b = add(system, {{c(0)}, {c(1)}}),
                   d = add(system, {{c(1)}, {c(2)}}), e = add(system, {{c(2)}});
  system.solve();
  EXPECT_EQ(system.rate(a), 2);
  EXPECT_EQ(system.rate(b), 2);
  EXPECT_EQ(system.rate(d), 8);
  EXPECT_EQ(system.rate(e), 12);
}

TEST(MaxMin, BoundsFreeCapacityForOthers) {
  // x <= 1, y <= 4, z free, sum <= 12: x = 1, y = 4, z = 7. With y <= 100: (12 - 1) / 2 = 5.5.
  MaxMin system = with_capacities({12});
  const VariableId x = add(system, {{c(0)}}, 1), y = add(system, {{c(0)}}, 4),
                   z = add(system, {{c(0)}});
  system.solve();
  EXPECT_EQ(system.rate(x), 1);
  EXPECT_EQ(system.rate(y), 4);
  EXPECT_EQ(system.rate(z), 7);
  system.remove_variable(y);
  const VariableId loose = add(system, {{c(0)}}, 100);
  system.solve();
  EXPECT_EQ(system.rate(loose), 5.5);
  EXPECT_EQ(system.rate(z), 5.5);
}

TEST(MaxMin, BoundsAloneMayLimit) {
  MaxMin system = with_capacities({1000});
  const VariableId x = add(system, {{c(0)}}, 3), y = add(system, {{c(0)}}, 3);
  system.solve();
  EXPECT_EQ(system.rate(x), 3);
  EXPECT_EQ(system.rate(y), 3);
  EXPECT_EQ(max_min_violation(system, std::vector{x.value, y.value}), "");
}

TEST(MaxMin, SprayedCoefficients) {
  // x goes over c0 and c1 with half its rate each; y uses c1 alone. C = 10, 9.
  // c1: x/2 + y <= 9 gives 9 / 1.5 = 6 to both; c0 carries 3.
  MaxMin system = with_capacities({10, 9});
  const VariableId x = add(system, {{c(0), 0.5}, {c(1), 0.5}}), y = add(system, {{c(1)}});
  system.solve();
  EXPECT_EQ(system.rate(x), 6);
  EXPECT_EQ(system.rate(y), 6);
}

TEST(MaxMin, CopiesOfAVariableShareAsManyVariables) {
  // 3 x + y <= 12, y <= 2 on its own: y = 2, x = 10 / 3; two copies 5, one 10, none: y stays.
  MaxMin system = with_capacities({12, 2});
  const std::vector<MaxMin::Term> terms{{c(0)}};
  const VariableId x = system.add_variable(terms, MaxMin::kUnbounded, /*active=*/false);
  const VariableId y = add(system, {{c(0)}, {c(1)}});
  const auto solve_with = [&](std::int32_t copies) {
    system.set_copies(x, copies);
    system.solve();
    EXPECT_EQ(system.rate(y), 2);
    return copies == 0 ? 0 : system.rate(x);
  };
  EXPECT_NEAR(solve_with(3), 10.0 / 3, 1e-10);
  EXPECT_EQ(solve_with(1), 10);
  EXPECT_EQ(solve_with(2), 5);
  EXPECT_EQ(solve_with(0), 0);
  EXPECT_EQ(solve_with(1), 10);
  system.remove_variable(y);
  system.set_copies(x, 4);
  system.solve();
  EXPECT_EQ(system.rate(x), 3);
}

TEST(MaxMin, AConstraintNamedTwiceCountsTwice) {
  // 2 x + y <= 9.
  MaxMin system = with_capacities({9});
  const VariableId x = add(system, {{c(0)}, {c(0)}}), y = add(system, {{c(0)}});
  system.solve();
  EXPECT_EQ(system.rate(x), 3);
  EXPECT_EQ(system.rate(y), 3);
  system.remove_variable(x);
  system.solve();
  EXPECT_EQ(system.rate(y), 9);
}

TEST(MaxMin, ReportsOnlyWhatChanged) {
  // Two separate constraints; the second is left alone when the first gets another variable, and
  // a variable limited elsewhere keeps its rate.
  MaxMin system = with_capacities({8, 8, 1});
  const VariableId x = add(system, {{c(0)}});
  add(system, {{c(1)}});
  const VariableId slow = add(system, {{c(0)}, {c(2)}});
  system.solve();
  EXPECT_EQ(system.rate(x), 7);
  EXPECT_EQ(system.rate(slow), 1);
  const VariableId fresh = add(system, {{c(0)}});
  const auto changed = system.solve();
  EXPECT_EQ(std::vector(changed.begin(), changed.end()).size(), 2U);
  EXPECT_EQ(system.rate(x), 3.5);
  EXPECT_EQ(system.rate(fresh), 3.5);
  EXPECT_TRUE(system.solve().empty());
}

TEST(MaxMin, FollowsCapacityAndActivation) {
  MaxMin system = with_capacities({8});
  const VariableId x = add(system, {{c(0)}});
  const VariableId later =
      system.add_variable(std::vector<MaxMin::Term>{{c(0)}}, MaxMin::kUnbounded, false);
  system.solve();
  EXPECT_EQ(system.rate(x), 8);
  system.activate(later);
  system.set_capacity(c(0), 6);
  system.solve();
  EXPECT_EQ(system.rate(x), 3);
  EXPECT_EQ(system.rate(later), 3);
  system.remove_variable(later);
  system.solve();
  EXPECT_EQ(system.rate(x), 6);
}

TEST(MaxMin, UsesIdsAgain) {
  MaxMin system = with_capacities({8, 8});
  const VariableId x = add(system, {{c(0)}});
  system.remove_variable(x);
  const VariableId y = add(system, {{c(1)}, {c(0)}});
  EXPECT_EQ(x, y);
  system.solve();
  EXPECT_EQ(system.rate(y), 8);
}

TEST(MaxMin, RefusesWhatHasNoSolution) {
  MaxMin system;
  EXPECT_THROW(system.add_constraint(0), InternalError);
  EXPECT_THROW(system.add_constraint(MaxMin::kUnbounded), InternalError);
  MaxMin good = with_capacities({1});
  EXPECT_THROW(add(good, {}), InternalError);
  EXPECT_THROW(add(good, {{c(0), 1e-9}}), InternalError);
  EXPECT_THROW(add(good, {{c(0)}}, 0), InternalError);
}

TEST(MaxMinCertificate, SeesStaleRates) {
  // After the capacity falls, the old rate overfills; after it rises, nothing limits the variable.
  MaxMin system = with_capacities({8});
  const VariableId x = add(system, {{c(0)}});
  system.solve();
  EXPECT_EQ(max_min_violation(system, std::vector{x.value}), "");
  system.set_capacity(c(0), 4);
  EXPECT_EQ(
      max_min_violation(system, std::vector{x.value}),
      "constraint 0 carries 8 of 4; variable 0 has rate 8 there, of 549755813888 units where it "
      "is full at 274877906944");
  system.set_capacity(c(0), 16);
  EXPECT_EQ(max_min_violation(system, std::vector{x.value}),
            "variable 0 at rate 8 is limited by no bound and no constraint");
}

TEST(MaxMinCertificate, SeesUnfairRates) {
  // x + y <= 8 and x <= 2 give 2 and 6. With x <= 3 these rates are unfair: c0 is full, but x is
  // not the largest there, and c1 has room.
  MaxMin system = with_capacities({8, 2});
  const VariableId x = add(system, {{c(0)}, {c(1)}}), y = add(system, {{c(0)}});
  system.solve();
  EXPECT_EQ(system.rate(x), 2);
  EXPECT_EQ(system.rate(y), 6);
  system.set_capacity(c(1), 3);
  EXPECT_NE(max_min_violation(system, std::vector{x.value, y.value}), "");
}

}  // namespace
}  // namespace lockstep::max_min_test
