#include "app/sweep/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace lockstep {
namespace {

/// Flags that say how much there is to do, and the power of their number that the time grows with.
constexpr std::array<std::pair<std::string_view, double>, 12> kWork{{
    {"gpus", 1.0},
    {"nodes", 1.0},
    {"gpus-per-node", 1.0},
    {"num-layers", 1.0},
    {"layers", 1.0},
    {"num-experts", 0.5},
    {"global-batch", 0.5},
    {"gbs", 0.5},
    {"pp", 0.5},
    {"steps", 1.0},
    {"channels", 0.5},
    {"size", 0.2},
}};

/// The engines beside each other, from docs/performance.md: orders of magnitude.
double engine_weight(std::string_view engine) {
  return engine == "packet" ? std::log(1e4) : engine == "flow" ? std::log(10.0) : 0;
}

/// The largest whole number in a text: "Spectrum-X:g=128" has 128 GPUs.
double largest_number(std::string_view text) {
  double largest = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string_view::npos) {
      break;
    }
    at = std::min(text.find_first_not_of("0123456789", begin), text.size());
    largest = std::max(largest, to_double(text.substr(begin, at - begin)).value_or(1));
  }
  return largest;
}

double guess(const GridPoint& point) {
  double log_seconds = 0;
  for (const auto& [flag, value] : point.inputs) {
    const std::string text = to_text(value);
    if (flag == "engine") {
      log_seconds += engine_weight(text);
    } else if (flag == "topology") {
      log_seconds += std::log(largest_number(text));
    } else if (const auto* work = std::ranges::find(kWork, std::string_view(flag),
                                                    &std::pair<std::string_view, double>::first);
               work != kWork.end()) {
      log_seconds += work->second * std::log(std::max(1.0, largest_number(text)));
    }
  }
  return log_seconds;
}

}  // namespace

SweepCost::SweepCost(const Grid& grid) {
  for (const GridAxis& axis : grid.axes) {
    by_place_.emplace_back(axis.values.size());
  }
}

double SweepCost::predict(const GridPoint& point) const {
  double predicted = guess(point);
  if (all_.count == 0) {
    return predicted;
  }
  const double mean = all_.sum / all_.count;
  predicted += mean;
  for (std::size_t a = 0; a < by_place_.size(); ++a) {
    // Drawn to the mean as if it had been seen once more.
    const Mean& seen = by_place_[a][point.places[a]];
    predicted += (seen.sum - seen.count * mean) / (seen.count + 1);
  }
  return predicted;
}

void SweepCost::learn(const GridPoint& point, double seconds) {
  const double residual = std::log(std::max(seconds, 1e-6)) - guess(point);
  all_.sum += residual;
  all_.count += 1;
  for (std::size_t a = 0; a < by_place_.size(); ++a) {
    by_place_[a][point.places[a]].sum += residual;
    by_place_[a][point.places[a]].count += 1;
  }
  ++learned_;
}

}  // namespace lockstep
