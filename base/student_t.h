#pragma once

#include <cstddef>

namespace lockstep {

/// Half the width of the 95 % interval of a mean of `n` independent draws, over deviation /
/// sqrt(n): Student's t quantile at 0.975 with n - 1 degrees of freedom. 12.7 for two draws, 1.96
/// for many; 0 for fewer than two, of which no deviation is known.
double student_t_95(std::size_t n);

}  // namespace lockstep
