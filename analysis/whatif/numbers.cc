#include "analysis/whatif/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/compile.h>
#include <fmt/format.h>

namespace lockstep::whatif {
namespace {

template <class T>
T pairwise_sum(std::span<const T> v) {
  const std::size_t n = v.size();
  if (n < 8) {
    T sum = 0;
    for (const T x : v) {
      sum += x;
    }
    return sum;
  }
  if (n <= 128) {
    std::array<T, 8> r{};
    std::copy_n(v.begin(), 8, r.begin());
    std::size_t i = 8;
    for (; i + 8 <= n; i += 8) {
      for (std::size_t k = 0; k < 8; ++k) {
        r[k] += v[i + k];
      }
    }
    T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) {
      sum += v[i];
    }
    return sum;
  }
  const std::size_t half = n / 2 / 8 * 8;
  return pairwise_sum(v.first(half)) + pairwise_sum(v.subspan(half));
}

template <class T>
double median_of(std::span<T> v) {
  const std::size_t half = v.size() / 2;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) {
    return static_cast<double>(*middle);
  }
  const T below = *std::max_element(v.begin(), middle);
  return (static_cast<double>(below) + static_cast<double>(*middle)) / 2;
}

}  // namespace

double pairwise_mean(std::span<const double> values) {
  return pairwise_sum(values) / static_cast<double>(values.size());
}

float pairwise_mean(std::span<const float> values) {
  return pairwise_sum(values) / static_cast<float>(values.size());
}

double median(std::span<float> values) { return median_of(values); }
double median(std::span<double> values) { return median_of(values); }

void append_python_float(std::string& out, double value) {
  std::array<char, 40> text;
  char* end = fmt::format_to(text.data(), FMT_COMPILE("{}"), value);
  // Whole numbers have no point yet, but for those with an exponent.
  if (std::abs(value) < 1e16 && static_cast<double>(static_cast<std::int64_t>(value)) == value) {
    *end++ = '.';
    *end++ = '0';
  }
  out.append(text.data(), end);
}

}  // namespace lockstep::whatif
