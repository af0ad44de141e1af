#include "trace/aicb_bandwidth.h"

#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

/// Python's round(x, 2): the decimal text with two digits of the exact binary value, ties to even.
double two_digits(double value) { return std::stod(fmt::format("{:.2f}", value)); }

}  // namespace

AicbBandwidth aicb_bandwidth(std::string_view type, std::int64_t bytes, double milliseconds,
                             std::int64_t group_size) {
  const double seconds = milliseconds / 1000;
  if (type == "barrier" || type == "computation" || !(seconds > 0)) {
    return {};
  }
  const auto n = static_cast<double>(group_size < 1 ? 1 : group_size);
  const double algbw = static_cast<double>(bytes) / seconds;
  double busbw = algbw;
  if (type == "all_gather" || type == "reduce_scatter") {
    busbw = algbw * ((n - 1) / n);
  } else if (type == "all_reduce") {
    busbw = algbw * (2 * (n - 1) / n);
  }
  return {two_digits(algbw / kAicbUnit), two_digits(busbw / kAicbUnit)};
}

std::optional<std::int64_t> aicb_size(std::string_view text) {
  text = trim(text);
  if (const auto whole = to_int(text)) {
    return *whole >= 0 ? whole : std::nullopt;
  }
  if (text == "None" || text.empty()) {
    return 0;
  }
  if (text.starts_with('-') && to_double(split_blanks(text).front())) {
    return std::nullopt;  // no size, whatever its unit
  }
  std::size_t digits = 0;
  while (digits < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[digits])) != 0 || text[digits] == '.')) {
    ++digits;
  }
  const auto number = to_double(text.substr(0, digits));
  if (!number) {
    return 0;  // as AICB takes what is no number
  }
  const std::string_view unit = trim(text.substr(digits));
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  double scale = 1;
  for (const std::string_view name : kUnits) {
    if (number && unit == name) {
      const double bytes = *number * scale;
      return bytes < 9e18 ? std::optional(static_cast<std::int64_t>(bytes)) : std::nullopt;
    }
    scale *= 1024;
  }
  if (number && unit.empty() && *number < 9e18) {
    return static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

std::string aicb_size_text(std::int64_t bytes) {
  if (bytes == 0) {
    return "0 B";
  }
  constexpr std::array<const char*, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::string text = fmt::format("{:.2f}", value);
  if (text.ends_with('0')) {
    text.pop_back();
  }
  return fmt::format("{} {}", text, kUnits[unit]);
}

}  // namespace lockstep
