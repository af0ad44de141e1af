#include "trace/rate_unit.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep {

std::optional<double> rate_unit(std::string_view text) {
  constexpr std::pair<std::string_view, double> kScales[] = {
      {"T", 1e12},           {"G", 1e9},           {"M", 1e6},        {"K", 1e3},    {"k", 1e3},
      {"Ti", 1099511627776}, {"Gi", 1073741824.0}, {"Mi", 1048576.0}, {"Ki", 1024.0}};
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"B", 1},     {"Byte", 1},    {"Bytes", 1},    {"byte", 1},    {"bytes", 1},
      {"b", 0.125}, {"bit", 0.125}, {"bits", 0.125}, {"Bit", 0.125}, {"Bits", 0.125}};
  constexpr std::string_view kEachSecond[] = {"/s", "ps"};
  if (std::ranges::all_of(kEachSecond, [&](std::string_view word) {
        return text.find(word) == std::string_view::npos;
      })) {
    return std::nullopt;
  }
  std::size_t first = text.size();
  std::optional<double> rate;
  for (const auto& [scale, factor] : kScales) {
    for (const auto& [unit, bytes] : kUnits) {
      for (const std::string_view each_second : kEachSecond) {
        const std::string word = std::string(scale) + std::string(unit) + std::string(each_second);
        if (const std::size_t at = text.find(word); at < first) {
          first = at;
          rate = factor * bytes;
        }
      }
    }
  }
  return rate;
}

}  // namespace lockstep
