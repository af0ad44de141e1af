#include "generator/rules.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 1'000'000;
constexpr long double kMaxRows = 2e9L;

}  // namespace

NearDivisors nearest_divisors(Count value, Count near) {
  NearDivisors found;
  const Count top = std::min(near, value);
  for (Count d = top; d > 0 && top - d < kSteps; d -= 1) {
    if (value % d == 0) {
      found.below = d;
      break;
    }
  }
  for (Count d = near; d <= value && d - near < kSteps; d += 1) {
    if (value % d == 0) {
      found.above = d;
      break;
    }
  }
  return found;
}

void require_divides(std::string_view what, Count value, std::string_view flag, Count divisor) {
  if (value % divisor == 0) {
    return;
  }
  const NearDivisors near = nearest_divisors(value, divisor);
  std::string nearest = fmt::format("{}", near.below.value);
  if (near.above > 0) {
    nearest += fmt::format(" or {}", near.above.value);
  }
  const Count low = value / divisor * divisor;
  throw Error(fmt::format("{} = {} is not divisible by {}", what, value.value, divisor.value))
      .field(fmt::format("--{}", flag))
      .expected(fmt::format("a divisor of {}: {}", value.value, nearest))
      .hint(low > 0 ? fmt::format("or make {} {} or {}", what, low.value, (low + divisor).value)
                    : fmt::format("or make {} {}", what, divisor.value));
}

void require_row_limit(long double rows) {
  if (!(rows <= kMaxRows)) {
    throw Error(fmt::format("the workload would have {:.3g} rows", static_cast<double>(rows)))
        .expected("at most 2e9")
        .hint(
            "the number of layers, microbatches (global_batch / micro_batch / dp), epochs or "
            "iterations is too large");
  }
}

}  // namespace lockstep
