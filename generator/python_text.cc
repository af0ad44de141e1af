#include "generator/python_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

std::string python_repr(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  }
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  std::array<char, 64> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(digits.data(), end.ptr);
  if (!exponent && text.find('.') == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::int64_t python_round(double value) {
  const double rounded = std::nearbyint(value);  // the default rounding mode is ties to even
  if (!(std::fabs(rounded) < 9.2e18)) {
    throw Error(fmt::format("the number {} is too large", value));
  }
  return static_cast<std::int64_t>(rounded);
}

std::optional<std::int64_t> python_int(std::string_view text) {
  std::string digits;
  const std::string_view body = trim(text);
  for (std::size_t i = 0; i < body.size(); ++i) {
    const auto is_digit = [&](std::size_t k) {
      return k < body.size() && body[k] >= '0' && body[k] <= '9';
    };
    if (body[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) {
      continue;
    }
    digits += body[i];
  }
  return to_int(digits);
}

double python_true_divide(std::int64_t a, std::int64_t b) {
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

}  // namespace lockstep
