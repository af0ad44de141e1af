#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

struct Unit {
  std::string_view name;
  long double scale;
};

constexpr std::array<Unit, 8> kTimeUnits{{{"fs", 1e-3L},
                                          {"ps", 1.0L},
                                          {"ns", 1e3L},
                                          {"us", 1e6L},
                                          {"ms", 1e9L},
                                          {"s", 1e12L},
                                          {"min", 60e12L},
                                          {"h", 3600e12L}}};
constexpr std::array<Unit, 11> kSizeUnits{{{"", 1.0L},
                                           {"B", 1.0L},
                                           {"kB", 1e3L},
                                           {"KB", 1e3L},
                                           {"MB", 1e6L},
                                           {"GB", 1e9L},
                                           {"TB", 1e12L},
                                           {"KiB", 1024.0L},
                                           {"MiB", 1048576.0L},
                                           {"GiB", 1073741824.0L},
                                           {"TiB", 1099511627776.0L}}};
constexpr std::array<Unit, 10> kRatePrefixes{{{"", 1.0L},
                                              {"k", 1e3L},
                                              {"K", 1e3L},
                                              {"M", 1e6L},
                                              {"G", 1e9L},
                                              {"T", 1e12L},
                                              {"Ki", 1024.0L},
                                              {"Mi", 1048576.0L},
                                              {"Gi", 1073741824.0L},
                                              {"Ti", 1099511627776.0L}}};
constexpr std::array<Unit, 5> kRateUnits{
    {{"bps", 1.0L}, {"b/s", 1.0L}, {"bit/s", 1.0L}, {"Bps", 8.0L}, {"B/s", 8.0L}}};

constexpr std::string_view kTimeHelp = "a time such as 1.5us (units fs ps ns us ms s min h)";
constexpr std::string_view kSizeHelp =
    "a size such as 64MiB (units B kB MB GB TB = powers of 1000, KiB MiB GiB TiB = of 1024)";
constexpr std::string_view kRateHelp =
    "a bandwidth such as 400Gbps (bits) or 50GBps (bytes); also b/s and B/s";

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return &unit;
    }
  }
  return nullptr;
}

struct Quantity {
  long double number;
  std::string_view unit;
};

Quantity split_quantity(std::string_view text, std::string_view help) {
  long double number = 0;
  const char* end = text.data() + text.size();
  // From a text that begins like "nan" or "inf" libstdc++ 12 reads on past its end.
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.find_first_of("0123456789.") != sign) {
    throw Error(fmt::format("'{}' is no number with a unit", printable(text))).expected(help);
  }
  const auto [after, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || !std::isfinite(number)) {
    throw Error(fmt::format("'{}' is no number with a unit", printable(text))).expected(help);
  }
  if (number < 0) {
    throw Error(fmt::format("'{}' is negative", printable(text))).expected(help);
  }
  const char* rest = after;
  while (rest != end && *rest == ' ') {
    ++rest;
  }
  return {number, {rest, static_cast<std::size_t>(end - rest)}};
}

std::int64_t to_int64(long double value, std::string_view text, std::string_view help) {
  if (!(value < 9.2e18L)) {
    throw Error(fmt::format("'{}' is too large", printable(text))).expected(help);
  }
  return std::llroundl(value);
}

std::int64_t nearest(double value, const char* what) {
  if (!(std::abs(value) < 9.2e18)) {
    throw_overflow(what);
  }
  return std::llround(value);
}

}  // namespace

void throw_overflow(const char* type) {
  throw Error(fmt::format("a {} left the range of 64-bit integers", type))
      .hint("times end at 106 days, sizes at 9.2e18 bytes; look for a value that is far too large");
}

Time Time::seconds(double v) { return Time(nearest(v * 1e12, "time")); }

Bandwidth Bandwidth::bytes_per_second(double v) { return Bandwidth(nearest(v * 8.0, "bandwidth")); }

Time transfer_time(Bytes size, Bandwidth rate) {
  if (rate.bits_per_second() <= 0) {
    throw Error("data cannot cross a link of zero bandwidth");
  }
  __extension__ using Wide = __int128;
  const Wide bit_ps = static_cast<Wide>(size.count()) * 8 * 1'000'000'000'000;
  const Wide ps = (bit_ps + rate.bits_per_second() - 1) / rate.bits_per_second();
  if (ps > std::numeric_limits<std::int64_t>::max()) {
    throw_overflow("time");
  }
  return Time::ps(static_cast<std::int64_t>(ps));
}

Time parse_time(std::string_view text) {
  if (text == "0") {
    return Time();
  }
  const Quantity q = split_quantity(text, kTimeHelp);
  const Unit* unit = find_unit(kTimeUnits, q.unit);
  if (unit == nullptr) {
    throw Error(fmt::format("'{}' has no known unit of time", printable(text))).expected(kTimeHelp);
  }
  return Time::ps(to_int64(q.number * unit->scale, text, kTimeHelp));
}

Bytes parse_bytes(std::string_view text) {
  const Quantity q = split_quantity(text, kSizeHelp);
  const Unit* unit = find_unit(kSizeUnits, q.unit);
  if (unit == nullptr) {
    Error error =
        Error(fmt::format("'{}' has no known unit of size", printable(text))).expected(kSizeHelp);
    if (q.unit.size() == 1 && std::string_view("kKMGT").find(q.unit) != std::string_view::npos) {
      const std::string_view number = text.substr(0, text.size() - 1);
      throw std::move(error).hint(fmt::format("write {}{}iB (powers of 1024) or {}{}B (of 1000)",
                                              printable(number), q.unit == "k" ? "K" : q.unit,
                                              printable(number), q.unit == "K" ? "k" : q.unit));
    }
    throw error;
  }
  return Bytes(to_int64(q.number * unit->scale, text, kSizeHelp));
}

Bandwidth parse_bandwidth(std::string_view text) {
  const Quantity q = split_quantity(text, kRateHelp);
  for (const Unit& unit : kRateUnits) {
    if (!q.unit.ends_with(unit.name)) {
      continue;
    }
    const std::string_view prefix = q.unit.substr(0, q.unit.size() - unit.name.size());
    if (const Unit* scale = find_unit(kRatePrefixes, prefix)) {
      return Bandwidth::bits_per_second(
          to_int64(q.number * scale->scale * unit.scale, text, kRateHelp));
    }
  }
  throw Error(fmt::format("'{}' has no known unit of bandwidth", printable(text)))
      .expected(kRateHelp);
}

std::string to_text(Time time) {
  const double ps = static_cast<double>(time.count_ps());
  const double size = std::abs(ps);
  if (size < 1e3) {
    return fmt::format("{} ps", time.count_ps());
  }
  if (size < 1e6) {
    return fmt::format("{:.4g} ns", ps / 1e3);
  }
  if (size < 1e9) {
    return fmt::format("{:.4g} us", ps / 1e6);
  }
  if (size < 1e12) {
    return fmt::format("{:.4g} ms", ps / 1e9);
  }
  return size < 1e16 ? fmt::format("{:.4g} s", ps / 1e12) : fmt::format("{:.0f} s", ps / 1e12);
}

std::string to_text(Bytes size) {
  const double bytes = static_cast<double>(size.count());
  constexpr std::array<const char*, 6> kNames{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::abs(bytes) < 1024) {
    return fmt::format("{} B", size.count());
  }
  double scaled = bytes / 1024;
  std::size_t unit = 0;
  while (std::abs(scaled) >= 1024 && unit + 1 < kNames.size()) {
    scaled /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", scaled, kNames[unit]);
}

std::string to_text(Bandwidth rate) {
  const double bps = static_cast<double>(rate.bits_per_second());
  if (bps < 1e3) {
    return fmt::format("{} bps", rate.bits_per_second());
  }
  if (bps < 1e6) {
    return fmt::format("{:.4g} kbps", bps / 1e3);
  }
  if (bps < 1e9) {
    return fmt::format("{:.4g} Mbps", bps / 1e6);
  }
  if (bps < 1e13) {
    return fmt::format("{:.4g} Gbps", bps / 1e9);
  }
  return bps < 1e16 ? fmt::format("{:.4g} Tbps", bps / 1e12)
                    : fmt::format("{:.4g} Pbps", bps / 1e15);
}

}  // namespace lockstep
