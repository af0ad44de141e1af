#include "simulator/network/packet_engine_simai_entry.h"

#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {

std::string_view SimaiConfEntry::text() const {
  expect(1);
  return words_[1];
}

void SimaiConfEntry::any_number() const {
  if (!to_double(text())) {
    throw error(fmt::format("'{}' cannot be", printable(text()))).expected("a number");
  }
}

Bandwidth SimaiConfEntry::rate() const {
  // ns-3 writes "50Mb/s", as the unit library does.
  try {
    return parse_bandwidth(text());
  } catch (Error& problem) {
    throw std::move(problem).at(*file_, line_).field(key());
  }
}

void SimaiConfEntry::expect(std::size_t values) const {
  if (size() != values) {
    throw error(fmt::format("{} values", size()))
        .expected(values == 1 ? "one value without a blank" : fmt::format("{} values", values));
  }
}

std::string_view SimaiConfEntry::at(std::size_t i) const {
  if (i >= size()) {
    throw error(fmt::format("{} values", size())).expected(fmt::format("at least {}", i + 1));
  }
  return words_[i + 1];
}

double SimaiConfEntry::number_of(std::string_view text, double low, double high) const {
  const std::optional<double> value = to_double(text);
  if (!value || *value < low || *value > high) {
    throw error(fmt::format("'{}' cannot be", printable(text)))
        .expected(fmt::format("a number from {} to {}", low, high));
  }
  return *value;
}

std::int64_t SimaiConfEntry::whole_of(std::string_view text, double low, double high) const {
  const double value = number_of(text, low, high);
  if (value != std::floor(value)) {
    throw error(fmt::format("'{}' cannot be", printable(text)))
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace lockstep
