#pragma once

#include "generator/exact/pass.h"

namespace lockstep {

/// A backward pass in two: what the stage before waits for, and what only the weights' gradients
/// need, which may run at any later time (Qi et al., Zero Bubble Pipeline Parallelism, section 2).
struct SplitPass {
  Pass input, weights;
};

/// A step of the first part that came after one of the second comes after what that one came after.
/// A step of the second part waits only for others of it. O(steps^2) at worst.
SplitPass split_weights(const Pass& backward);

}  // namespace lockstep
