#pragma once

#include <functional>
#include <vector>

namespace lockstep {

struct Minimum {
  std::vector<double> at;
  double value = 0;
};

/// Finds a local minimum by the simplex method of Nelder and Mead (1965) with its usual
/// coefficients: reflection 1, expansion 2, contraction 1/2, shrinking 1/2. `rounds` times, one to
/// 2 + n evaluations each. A point that is out of bounds has an infinite value. Deterministic.
Minimum nelder_mead(const std::function<double(const std::vector<double>&)>& f,
                    const std::vector<double>& start, int rounds);

}  // namespace lockstep
