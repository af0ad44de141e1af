#include "simulator/network/packet_engine_simai_ecn.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kKeys = {"KMIN_MAP", "KMAX_MAP", "PMAX_MAP"};
constexpr std::size_t kMin = 0, kMax = 1, kProbability = 2;

std::string rate_text(std::int64_t rate) { return to_text(Bandwidth::bits_per_second(rate)); }

}  // namespace

bool SimaiEcnMaps::is_one(std::string_view key) {
  return std::ranges::find(kKeys, key) != kKeys.end();
}

void SimaiEcnMaps::read(const SimaiConfEntry& entry) {
  const auto rows = static_cast<std::size_t>(entry.whole_at(0, 0, 1000));
  if (entry.size() != 1 + 2 * rows) {
    throw entry
        .error(fmt::format("{} rates are announced, {} values follow", rows, entry.size() - 1))
        .expected("a rate in bits per second and a value for each");
  }
  const auto which =
      static_cast<std::size_t>(std::ranges::find(kKeys, entry.key()) - kKeys.begin());
  file_ = entry.file();
  maps_[which].line = entry.line();
  for (std::size_t i = 0; i < rows; ++i) {
    const auto rate = static_cast<std::int64_t>(entry.number_at(1 + 2 * i, 1, 1e15));
    const double value = entry.number_at(2 + 2 * i, 0, which == kProbability ? 1 : 1e9);
    maps_[which].values[rate] =
        which == kProbability ? value : std::round(value * 1000);  // given in kB
  }
}

void SimaiEcnMaps::apply(PacketOptions& options, Warnings& warnings) const {
  if (std::ranges::all_of(maps_, [](const Map& map) { return map.line == 0; })) {
    return;
  }
  Maps maps = maps_;
  for (const PacketOptions::EcnRow& row : simai_ecn_rows()) {
    const std::array<double, 3> values = {static_cast<double>(row.kmin.count()),
                                          static_cast<double>(row.kmax.count()), row.pmax};
    for (std::size_t i = 0; i < maps.size(); ++i) {
      if (maps[i].line == 0) {
        maps[i].values[row.rate.bits_per_second()] = values[i];
      }
    }
  }
  warn_of_gaps(maps, warnings);
  std::map<std::int64_t, std::array<double, 3>> rows;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    for (const auto& [rate, value] : maps[i].values) {
      rows[rate][i] = value;
    }
  }
  options.ecn.clear();
  for (const auto& [rate, values] : rows) {
    options.ecn.push_back({Bandwidth::bits_per_second(rate), Bytes(std::llround(values[kMin])),
                           Bytes(std::llround(values[kMax])), values[kProbability]});
    if (values[kMin] > values[kMax] && maps[kMax].values.contains(rate)) {
      const std::size_t own = maps_[kMin].line > 0 ? kMin : kMax;
      warnings.add(
          fmt::format("{}:{}: {}: at {} marking begins at {} kB, above the {} kB where all "
                      "is marked: all is marked above {} kB",
                      file_, maps_[own].line, kKeys[own], rate_text(rate), values[kMin] / 1000,
                      values[kMax] / 1000, values[kMin] / 1000));
    }
  }
}

void SimaiEcnMaps::warn_of_gaps(const Maps& maps, Warnings& warnings) const {
  std::set<std::int64_t> rates;
  for (const Map& map : maps) {
    for (const auto& [rate, value] : map.values) {
      rates.insert(rate);
    }
  }
  for (std::size_t i = 0; i < maps.size(); ++i) {
    std::string missing;
    for (const std::int64_t rate : rates) {
      if (!maps[i].values.contains(rate)) {
        missing += (missing.empty() ? "" : ", ") + rate_text(rate);
      }
    }
    if (!missing.empty()) {
      const std::string which =
          maps[i].line > 0 ? fmt::format("{}:{}: {}", file_, maps[i].line, kKeys[i])
                           : fmt::format("{}: there is no {}, and SimAI's own", file_, kKeys[i]);
      warnings.add(
          fmt::format("{} has no row for {}, which the other maps have: 0 there, as in "
                      "SimAI",
                      which, missing));
    }
  }
}

}  // namespace lockstep
