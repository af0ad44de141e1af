#include "analysis/whatif/numbers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

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

/// The decimals of a number below 10^8, first digit in the lowest byte: two numbers of four digits,
/// four of two, eight of one, side by side in a word.
std::uint64_t eight_digits(std::uint32_t value) {
  const std::uint64_t fours = value / 10000 | std::uint64_t{value % 10000} << 32;
  const std::uint64_t hundreds = (fours * 10486 >> 20) & 0x0000007F0000007FU;
  const std::uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const std::uint64_t tens = (twos * 103 >> 10) & 0x000F000F000F000FU;
  return (tens | (twos - 10 * tens) << 8) + 0x3030303030303030U;
}

/// The decimals of a number > 0, of 17 digits at most.
struct Digits {
  static constexpr std::size_t kMost = 24;
  std::array<char, 2 * kMost> text;  ///< the first 17 are used, the others may be copied along
  const char* first = nullptr;
  int count = 0;

  explicit Digits(std::uint64_t value) {
    constexpr std::uint64_t kEight = 100'000'000;
    const std::uint64_t upper = value / kEight;
    const std::uint64_t top = upper / kEight;
    put(1, static_cast<std::uint32_t>(upper - top * kEight));
    put(9, static_cast<std::uint32_t>(value - upper * kEight));
    text[0] = static_cast<char>('0' + top);
    first = text.data() + (top > 0 ? 0 : upper > 0 ? 1 : 9);
    while (*first == '0') {
      ++first;
    }
    count = static_cast<int>(text.data() + 17 - first);
  }

 private:
  void put(std::size_t at, std::uint32_t eight) {
    std::uint64_t word = eight_digits(eight);
    if constexpr (std::endian::native == std::endian::big) {
      word = __builtin_bswap64(word);
    }
    std::memcpy(text.data() + at, &word, 8);
  }
};

/// Brings those that `low` takes to the front of [first, last), without a branch that the processor
/// would have to guess; returns where the others begin.
template <class T, class Low>
T* parted(T* first, T* last, Low low) {
  T* end = first;
  for (T* at = first; at != last; ++at) {
    const T value = *at;
    *at = *end;
    *end = value;
    end += low(value) ? 1 : 0;
  }
  return end;
}

/// As std::nth_element, some three times faster: its comparisons are guessed wrong half the time.
template <class T>
T nth(std::span<T> v, std::size_t n) {
  constexpr std::ptrdiff_t kFew = 24;
  constexpr int kRounds = 64;  // then the pivots are bad ones
  T *first = v.data(), *last = first + v.size(), *const middle = first + n;
  for (int round = 0; round < kRounds && last - first > kFew; ++round) {
    const T a = *first, b = first[(last - first) / 2], c = last[-1];
    const T pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    T* const below = parted(first, last, [pivot](T x) { return x < pivot; });
    if (middle < below) {
      last = below;
    } else if (below > first) {
      first = below;
    } else {  // the pivot is the least of all
      first = parted(first, last, [pivot](T x) { return x <= pivot; });
      if (middle < first) {
        return pivot;
      }
    }
  }
  std::nth_element(first, middle, last);
  return *middle;
}

template <class T>
double median_of(std::span<T> v) {
  const std::size_t half = v.size() / 2;
  const T middle = nth(v, half);
  if (v.size() % 2 == 1) {
    return static_cast<double>(middle);
  }
  const T below = *std::max_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(half));
  return (static_cast<double>(below) + static_cast<double>(middle)) / 2;
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
float upper_median(std::span<float> values) { return nth(values, values.size() / 2); }

char* write_python_float(char* to, double value) {
  // Where the point stands among the digits 0.d1d2d3… * 10^point; beyond these CPython takes an
  // exponent.
  constexpr int kLowest = -3, kHighest = 16;
  // Copies of a fixed size, of which only the first so many bytes count.
  const auto put = [&to](const char* from, int n) {
    std::memcpy(to, from, Digits::kMost);
    to += n;
  };
  constexpr std::array<char, Digits::kMost> kZeros = {"0000000000000000000000"};
  constexpr std::array<char, Digits::kMost> kNoFraction = {".0"}, kNothingBefore = {"0."};
  if (std::signbit(value)) {
    *to++ = '-';
  }
  const double size = std::abs(value);
  if (size == 0) {
    put(kZeros.data(), 1);
    put(kNoFraction.data(), 2);
    return to;
  }
  // The shortest digits, without fmt's general formatting, which takes twice as long as they do.
  const auto decimal = fmt::detail::dragonbox::to_decimal(size);
  const Digits digits(decimal.significand);
  const int point = digits.count + decimal.exponent;
  if (point < kLowest || point > kHighest) {
    return fmt::format_to(to, FMT_COMPILE("{}"), size);
  }
  if (point <= 0) {
    put(kNothingBefore.data(), 2);
    put(kZeros.data(), -point);
    put(digits.first, digits.count);
  } else if (point < digits.count) {
    put(digits.first, point);
    *to++ = '.';
    put(digits.first + point, digits.count - point);
  } else {
    put(digits.first, digits.count);
    put(kZeros.data(), point - digits.count);
    put(kNoFraction.data(), 2);
  }
  return to;
}

void append_python_float(std::string& out, double value) {
  std::array<char, kPythonFloat> text;
  out.append(text.data(), write_python_float(text.data(), value));
}

}  // namespace lockstep::whatif
