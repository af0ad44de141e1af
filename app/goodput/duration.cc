#include "app/goodput/duration.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{{{"y", 31'557'600},
                                                                     {"w", 604'800},
                                                                     {"d", 86'400},
                                                                     {"h", 3600},
                                                                     {"min", 60},
                                                                     {"s", 1},
                                                                     {"ms", 1e-3}}};

}  // namespace

double parse_duration_s(std::string_view text) {
  const std::size_t unit = text.find_last_of("0123456789.");
  if (unit != text.npos) {
    const std::optional<double> value = to_double(text.substr(0, unit + 1));
    for (const auto& [name, seconds] : kUnits) {
      if (value && *value >= 0 && text.substr(unit + 1) == name) {
        return *value * seconds;
      }
    }
  }
  throw Error(fmt::format("'{}' is no time", printable(text)))
      .expected("a number of at least 0 with ms, s, min, h, d, w or y, such as 10min");
}

std::string duration_text(double seconds) {
  for (const auto& [name, size] : kUnits) {
    if (seconds >= size) {
      return fmt::format("{:.3g} {}", seconds / size, name);
    }
  }
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

}  // namespace lockstep
