#pragma once

#include <limits>
#include <vector>

#include "tests/support/random_system.h"

namespace lockstep::testing {

/// Progressive filling as textbooks print it, with full matrices: raise all open rates together by
/// the largest step that no constraint and no bound forbids; close what is then limited; repeat.
/// O(variables² · constraints). Shares no code with MaxMin.
inline std::vector<double> naive_max_min(const System& system) {
  const std::size_t n = system.variables.size(), m = system.capacities.size();
  std::vector<std::vector<double>> a(m, std::vector<double>(n));
  for (std::size_t v = 0; v < n; ++v) {
    for (const MaxMin::Term& term : system.variables[v].terms) {
      a[term.constraint.index()][v] += term.coefficient;
    }
  }
  std::vector<double> rate(n);
  std::vector<bool> open(n, true);
  for (std::size_t left = n; left > 0;) {
    double step = std::numeric_limits<double>::infinity();
    std::vector<double> room(m), weight(m);
    for (std::size_t c = 0; c < m; ++c) {
      room[c] = system.capacities[c];
      for (std::size_t v = 0; v < n; ++v) {
        room[c] -= a[c][v] * rate[v];
        weight[c] += open[v] ? a[c][v] : 0;
      }
      if (weight[c] > 0) {
        step = std::min(step, std::max(0.0, room[c]) / weight[c]);
      }
    }
    for (std::size_t v = 0; v < n; ++v) {
      if (open[v]) {
        step = std::min(step, system.variables[v].bound - rate[v]);
      }
    }
    for (std::size_t v = 0; v < n; ++v) {
      rate[v] += open[v] ? step : 0;
    }
    for (std::size_t v = 0; v < n; ++v) {
      bool limited = rate[v] >= system.variables[v].bound * (1 - 1e-14);
      for (std::size_t c = 0; c < m; ++c) {
        limited =
            limited || (a[c][v] > 0 && room[c] - weight[c] * step <= system.capacities[c] * 1e-12);
      }
      if (open[v] && limited) {
        open[v] = false;
        --left;
      }
    }
  }
  return rate;
}

}  // namespace lockstep::testing
