#include "generator/exact/nearest.h"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

namespace {

/// The divisors of `number` next to `value` that `fits` accepts.
template <class F>
std::vector<std::int64_t> divisors_around(std::int64_t number, std::int64_t value, F&& fits) {
  std::int64_t below = 0, above = 0;
  const auto consider = [&](std::int64_t divisor) {
    if (!fits(divisor)) {
      return;
    }
    if (divisor < value && divisor > below) {
      below = divisor;
    }
    if (divisor > value && (above == 0 || divisor < above)) {
      above = divisor;
    }
  };
  for (std::int64_t i = 1; i <= number / i; ++i) {
    if (number % i == 0) {
      consider(i);
      consider(number / i);
    }
  }
  std::vector<std::int64_t> found;
  for (const std::int64_t divisor : {below, above}) {
    if (divisor > 0) {
      found.push_back(divisor);
    }
  }
  return found;
}

}  // namespace

std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t value) {
  return divisors_around(number, value, [](std::int64_t) { return true; });
}

std::vector<std::int64_t> nearest_related(std::int64_t number, std::int64_t value,
                                          std::int64_t size, std::int64_t ranks) {
  return divisors_around(std::gcd(size, ranks), value, [&](std::int64_t divisor) {
    return number % divisor == 0 || divisor % number == 0;
  });
}

std::vector<std::int64_t> nearest_multiples(std::int64_t number, std::int64_t unit) {
  const std::int64_t lower = number / unit * unit;
  std::vector<std::int64_t> found;
  if (lower > 0) {
    found.push_back(lower);
  }
  if (lower != number) {
    found.push_back(lower + unit);
  }
  return found;
}

std::string nearest_text(const std::vector<std::int64_t>& values) {
  return fmt::format("{}", fmt::join(values, " or "));
}

}  // namespace lockstep
