#include "simulator/replay/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kNames{"normal", "lognormal", "uniform", "exponential"};
constexpr double kLeast = 0.05;

double standard_normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

}  // namespace

Distribution Distribution::named(std::string_view name, double spread) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    const std::string_view near = closest(name, kNames);
    throw Error(fmt::format("there is no distribution '{}'", printable(name)))
        .expected(join(kNames, ", ") + ", or a file that ends in .csv")
        .hint(near.empty() ? std::string() : fmt::format("did you mean {}?", near));
  }
  if (!(spread >= 0 && spread <= 10)) {
    throw Error(fmt::format("a spread of {} is out of range", spread)).expected("a number 0 to 10");
  }
  Distribution result;
  result.kind_ = static_cast<Kind>(found - kNames.begin());
  result.spread_ = spread;
  return result;
}

Distribution Distribution::of_sizes(std::string_view name, double spread) {
  Distribution result = named(name, spread);
  if (result.kind_ == Kind::kExponential) {
    if (spread > 1) {
      throw Error(fmt::format("a spread of {} is out of range", spread))
          .expected("a number 0 to 1: exponential sizes of mean 1 deviate by no more")
          .hint("lognormal has any deviation");
    }
    result.least_ = 1 - spread;
  }
  return result;
}

Distribution Distribution::histogram(std::string_view text, const std::string& file) {
  Distribution result;
  result.kind_ = Kind::kHistogram;
  double sum = 0;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find_last_not_of(" \r\t") + 1);
    if (line.empty()) {
      continue;
    }
    const std::size_t comma = line.find(',');
    const auto value = to_double(line.substr(0, comma));
    const auto weight = comma == std::string_view::npos ? std::optional<double>(1)
                                                        : to_double(line.substr(comma + 1));
    if (number == 1 && !value) {
      continue;  // names of the columns
    }
    const auto good = [](const std::optional<double>& x) { return x && *x >= 0 && *x <= 1e12; };
    if (!good(value) || !good(weight)) {
      throw Error(fmt::format("'{}' is no entry of a histogram", printable(line)))
          .at(file, number)
          .field(good(value) ? "weight" : "value")
          .expected("value,weight: two numbers that are not negative");
    }
    sum += *weight;
    result.values_.push_back(*value);
    result.cumulative_.push_back(sum);
  }
  if (!(sum > 0)) {
    throw Error("the histogram has no entry with a weight")
        .at(file)
        .expected("lines of value,weight, some weight above 0");
  }
  return result;
}

double Distribution::draw(Rng& rng) const {
  switch (kind_) {
    case Kind::kNormal:
      return std::max(kLeast, 1 + spread_ * standard_normal(rng));
    case Kind::kLognormal: {
      const double variance = std::log1p(spread_ * spread_);
      return std::exp(std::sqrt(variance) * standard_normal(rng) - variance / 2);
    }
    case Kind::kUniform:
      return std::max(kLeast, 1 + spread_ * std::numbers::sqrt3 * (2 * rng.uniform() - 1));
    case Kind::kExponential:
      return least_ - spread_ * std::log(1 - rng.uniform());
    case Kind::kHistogram: {
      const double where = rng.uniform() * cumulative_.back();
      const auto at = std::ranges::upper_bound(cumulative_, where) - cumulative_.begin();
      return values_[std::min(static_cast<std::size_t>(at), values_.size() - 1)];
    }
  }
  return 1;
}

}  // namespace lockstep
