#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "simulator/network/flow/max_min.h"

namespace lockstep::testing {

/// A max-min system as plain data.
struct System {
  struct Row {
    std::vector<MaxMin::Term> terms;
    double bound = MaxMin::kUnbounded;
  };
  std::vector<double> capacities;
  std::vector<Row> variables;
};

struct SystemShape {
  int constraints = 8;
  int variables = 12;
  int terms = 3;           ///< at most, per variable; no constraint twice
  bool fractions = false;  ///< coefficients 1/1 … 1/8 and 2, else all 1
  bool bounds = false;     ///< a third of the variables have one
};

/// Capacities are whole numbers from a small set in a third of the cases, so that ties are common.
inline System random_system(Rng& rng, const SystemShape& shape) {
  System system;
  const std::uint64_t kinds = rng.below(3) == 0 ? 3 : 1'000'000;
  for (int i = 0; i < shape.constraints; ++i) {
    system.capacities.push_back(1 + static_cast<double>(rng.below(kinds)));
  }
  for (int i = 0; i < shape.variables; ++i) {
    System::Row row;
    std::vector<int> free;
    for (int c = 0; c < shape.constraints; ++c) {
      free.push_back(c);
    }
    const auto terms = static_cast<int>(rng.between(1, std::min(shape.terms, shape.constraints)));
    for (int t = 0; t < terms; ++t) {
      const std::size_t pick = rng.below(free.size());
      double coefficient = 1;
      if (shape.fractions) {
        const std::uint64_t divisor = rng.below(9);
        // Multiples of 2^-36, as the flow engine gives them.
        coefficient =
            divisor == 0 ? 2 : static_cast<double>((std::uint64_t{1} << 36) / divisor) * 0x1p-36;
      }
      row.terms.push_back({ConstraintId(free[pick]), coefficient});
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    if (shape.bounds && rng.below(3) == 0) {
      row.bound = 0.01 + rng.uniform() * static_cast<double>(kinds) / 4;
    }
    system.variables.push_back(row);
  }
  return system;
}

/// Adds everything; variable i of the system gets id i in a fresh solver.
inline MaxMin to_max_min(const System& system, double units = 0x1p36) {
  MaxMin solver(units);
  for (const double capacity : system.capacities) {
    solver.add_constraint(capacity);
  }
  for (const System::Row& row : system.variables) {
    solver.add_variable(row.terms, row.bound);
  }
  return solver;
}

}  // namespace lockstep::testing
