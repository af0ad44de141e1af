#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "generator/exact/pass.h"

namespace lockstep {

/// How long an operator takes on the GPU at hand.
using OperatorTime = std::function<Time(const Operator&)>;

/// A PassStep with its time: computation, or a transfer (comm != kNone).
struct FoldedStep {
  std::string name;
  Time compute;
  Time host;  ///< to launch its operators
  PassComm transfer;
  std::vector<std::int32_t> after;
  ParameterCount ready;
};

struct FoldedPass {
  std::vector<FoldedStep> steps;
  std::vector<std::int32_t> exits;
};

/// Prices a pass, and makes one step of operators that run one after the other with no transfer
/// in between: a transfer that starts after one of them starts after the last. `launch`: host time
/// for each operator that takes any. O(steps).
FoldedPass fold(const Pass& pass, const OperatorTime& time, Time launch = {});

}  // namespace lockstep
