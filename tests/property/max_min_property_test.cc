#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "simulator/network/flow/max_min_certificate.h"
#include "tests/support/random_system.h"
#include "tests/support/whole_max_min.h"

namespace lockstep::max_min_property_test {
namespace {

using testing::random_system;
using testing::System;
using testing::SystemShape;
using testing::to_max_min;

SystemShape random_shape(Rng& rng) {
  return {static_cast<int>(rng.between(1, 30)), static_cast<int>(rng.between(1, 60)),
          static_cast<int>(rng.between(1, 5)), rng.below(2) == 0, rng.below(2) == 0};
}

std::vector<std::int32_t> all_variables(const System& system) {
  std::vector<std::int32_t> ids(system.variables.size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

std::vector<double> solved(const System& system) {
  MaxMin solver = to_max_min(system);
  solver.solve();
  std::vector<double> rates;
  for (std::size_t v = 0; v < system.variables.size(); ++v) {
    rates.push_back(solver.rate(VariableId(v)));
  }
  return rates;
}

/// The indices 0 … n-1 in random order.
std::vector<std::size_t> shuffled(Rng& rng, std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) {
    std::swap(order[i - 1], order[rng.below(i)]);
  }
  return order;
}

TEST(MaxMinProperty, HoldsTheCertificate) {
  Rng rng(1, "certificate");
  for (int round = 0; round < 1000; ++round) {
    const System system = random_system(rng, random_shape(rng));
    MaxMin solver = to_max_min(system);
    solver.solve();
    ASSERT_EQ(max_min_violation(solver, all_variables(system)), "") << "round " << round;
  }
}

TEST(MaxMinProperty, RelabellingVariablesChangesNoBit) {
  Rng rng(1, "relabelling");
  for (int round = 0; round < 300; ++round) {
    const System system = random_system(rng, random_shape(rng));
    const std::vector<std::size_t> order = shuffled(rng, system.variables.size());
    System other = system;
    for (std::size_t i = 0; i < order.size(); ++i) {
      other.variables[order[i]] = system.variables[i];
    }
    const std::vector<double> rates = solved(system), relabelled = solved(other);
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(rates[i], relabelled[order[i]]) << "round " << round;
    }
  }
}

TEST(MaxMinProperty, ScalingCapacitiesScalesRates) {
  // To the rounding of rates to multiples of 2^-36.
  Rng rng(1, "scaling");
  for (int round = 0; round < 300; ++round) {
    SystemShape shape = random_shape(rng);
    shape.bounds = false;
    const System system = random_system(rng, shape);
    const std::vector<double> rates = solved(system);
    for (const double factor : {4.0, 3.0}) {
      System scaled = system;
      for (double& capacity : scaled.capacities) {
        capacity *= factor;
      }
      const std::vector<double> more = solved(scaled);
      for (std::size_t i = 0; i < rates.size(); ++i) {
        ASSERT_NEAR(more[i], factor * rates[i], 1e-9 * more[i]);
      }
    }
  }
}

TEST(MaxMinProperty, SolvingAfterEachChangeEqualsSolvingAtOnce) {
  // A solver lives through random additions, removals and changes of capacities and bounds, solving
  // only what a change reaches; after each solve a fresh solver of the same system must have the
  // same rates, to rounding, and all others must have been reported as unchanged.
  Rng rng(1, "incremental");
  for (int round = 0; round < 40; ++round) {
    SystemShape shape = random_shape(rng);
    shape.constraints += 10;
    System system = random_system(rng, shape);
    std::vector<VariableId> ids;
    MaxMin solver;
    for (const double capacity : system.capacities) {
      solver.add_constraint(capacity);
    }
    const System pool = system;
    system.variables.clear();
    std::vector<double> before;
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t action = rng.below(10);
      if (action < 4 || ids.empty()) {
        system.variables.push_back(pool.variables[rng.below(pool.variables.size())]);
        ids.push_back(
            solver.add_variable(system.variables.back().terms, system.variables.back().bound));
        before.push_back(0);
      } else if (action < 7) {
        const auto victim = static_cast<std::ptrdiff_t>(rng.below(ids.size()));
        solver.remove_variable(ids[static_cast<std::size_t>(victim)]);
        ids.erase(ids.begin() + victim);
        system.variables.erase(system.variables.begin() + victim);
        before.erase(before.begin() + victim);
      } else if (action < 9) {
        const std::size_t v = rng.below(ids.size());
        system.variables[v].bound =
            rng.below(3) == 0 ? MaxMin::kUnbounded : 0.01 + 200 * rng.uniform();
        solver.set_bound(ids[v], system.variables[v].bound);
      } else {
        const std::size_t c = rng.below(system.capacities.size());
        system.capacities[c] = 1 + static_cast<double>(rng.below(1000));
        solver.set_capacity(ConstraintId(c), system.capacities[c]);
      }
      if (rng.below(3) == 0) {
        continue;  // let changes pile up
      }
      const auto changed = solver.solve();
      const std::vector<double> expected = solved(system);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(solver.rate(ids[i]), expected[i]) << "round " << round << ", step " << step;
        const bool reported = std::find(changed.begin(), changed.end(), ids[i]) != changed.end();
        ASSERT_TRUE(reported || solver.rate(ids[i]) == before[i]);
        before[i] = solver.rate(ids[i]);
      }
    }
  }
}

TEST(MaxMinProperty, RatesDependOnNothingThatWasBefore) {
  // As above, in whole numbers so small that most levels are rounded and many meet by rounding: to
  // the last unit the rates are those by definition, whatever was solved before.
  Rng rng(1, "whole numbers");
  constexpr std::int64_t kLargest[] = {30, 300, 1'000'000'000'000};
  for (int round = 0; round < 600; ++round) {
    const std::int64_t largest = kLargest[rng.below(3)];
    const auto some = [&](std::int64_t most) { return rng.between(1, most); };
    // Alike by threes, so that levels meet in large numbers too.
    const auto capacity = [&] { return 1000 + (rng.below(2) == 0 ? some(largest) : largest); };
    const std::size_t constraints = 1 + rng.below(12);
    testing::WholeSystem system;
    MaxMin solver(1);
    for (std::size_t c = 0; c < constraints; ++c) {
      system.capacities.push_back(capacity());
      solver.add_constraint(static_cast<double>(system.capacities.back()));
    }
    std::vector<VariableId> ids;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t action = rng.below(12);
      const std::size_t v = ids.empty() ? 0 : rng.below(ids.size());
      if (action < 5 || ids.empty()) {
        testing::WholeSystem::Row row;
        std::vector<MaxMin::Term> terms;
        for (std::size_t t = 1 + rng.below(3); t > 0; --t) {
          row.constraints.push_back(rng.below(constraints));
          terms.push_back({ConstraintId(row.constraints.back())});
        }
        row.bound = rng.below(3) == 0 ? some(largest / 4) : row.bound;
        ids.push_back(solver.add_variable(
            terms, row.bound <= largest ? static_cast<double>(row.bound) : MaxMin::kUnbounded));
        system.rows.push_back(row);
      } else if (action < 8) {
        solver.remove_variable(ids[v]);
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(v));
        system.rows.erase(system.rows.begin() + static_cast<std::ptrdiff_t>(v));
      } else if (action < 9) {
        system.rows[v].bound = some(largest / 4);
        solver.set_bound(ids[v], static_cast<double>(system.rows[v].bound));
      } else if (action < 10) {
        system.rows[v].copies = some(4);
        solver.set_copies(ids[v], static_cast<std::int32_t>(system.rows[v].copies));
      } else {
        const std::size_t c = rng.below(constraints);
        // Some by one unit alone: what was just full, or just not.
        system.capacities[c] = rng.below(2) == 0 ? capacity() : system.capacities[c] + 1;
        solver.set_capacity(ConstraintId(c), static_cast<double>(system.capacities[c]));
      }
      if (rng.below(3) == 0) {
        continue;  // let changes pile up
      }
      solver.solve();
      const std::vector<std::int64_t> expected = testing::whole_max_min(system);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(solver.rate_units(ids[i]), expected[i]) << "round " << round << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::max_min_property_test
