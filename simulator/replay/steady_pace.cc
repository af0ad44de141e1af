#include "simulator/replay/steady_pace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace lockstep {

SteadyPace::SteadyPace(std::int32_t connections, std::int32_t steps)
    : connections_(connections), steps_(static_cast<std::size_t>(steps)) {}

bool SteadyPace::add(std::int32_t index, Time now) {
  Step& step = steps_[static_cast<std::size_t>(index)];
  ++step.delivered;
  step.sum += static_cast<double>(now.count_ps());
  step.last = now;
  if (index != made_ || step.delivered < connections_) {
    return false;
  }
  ++made_;  // a connection's transfers come in order, so later steps are complete later
  return true;
}

double SteadyPace::mean(std::int32_t step) const {
  return steps_[static_cast<std::size_t>(step)].sum / connections_;
}

std::optional<SteadyPace::Estimate> SteadyPace::estimate(std::int32_t steps) const {
  constexpr std::int32_t kLeast = 24, kBlocks = 6;
  constexpr double kStudent = 2.57;
  if (made_ < std::max(kLeast, static_cast<std::int32_t>(steps_.size()) / 4)) {
    return std::nullopt;
  }
  const std::int32_t last = made_ - 1, block = (made_ - made_ / 4) / kBlocks;
  std::array<double, kBlocks> pace{};
  for (std::int32_t i = 0; i < kBlocks; ++i) {
    const std::int32_t end = last - i * block;
    pace[static_cast<std::size_t>(i)] = (mean(end) - mean(end - block)) / block;
  }
  const double average = std::accumulate(pace.begin(), pace.end(), 0.0) / kBlocks;
  double squares = 0, slope = 0, places = 0;
  for (std::int32_t i = 0; i < kBlocks; ++i) {
    const double off = pace[static_cast<std::size_t>(i)] - average;
    const double place = (kBlocks - 1) / 2.0 - i;  // in blocks, from the middle of all
    squares += off * off;
    slope += place * off;
    places += place * place;
  }
  const double drift = std::abs(slope / places) / block * (kBlocks / 2.0 * block + steps / 2.0);
  const auto behind = [&](std::int32_t step) {
    return static_cast<double>(steps_[static_cast<std::size_t>(step)].last.count_ps()) - mean(step);
  };
  const std::int32_t half = last / 2;
  const double falling = std::max(0.0, (behind(last) - behind(half)) / (last - half));
  const double uncertain = kStudent * std::sqrt(squares / (kBlocks - 1) / kBlocks);
  double furthest = 0;
  for (std::int32_t step = half; step <= last; ++step) {
    furthest = std::max(furthest, behind(step));
  }
  const double wandering = furthest * std::sqrt(1 + static_cast<double>(steps) / made_);
  return Estimate{Time::ps(std::llround(steps * average)),
                  Time::ps(std::llround(steps * (uncertain + drift + falling) + wandering))};
}

}  // namespace lockstep
