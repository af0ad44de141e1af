#include "simulator/replay/step_sample.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lockstep {

void price_stragglers(std::span<const Straggler> stragglers, const RunStep& run,
                      StepResult& result) {
  if (stragglers.empty()) {
    return;
  }
  result.clean = run({}, 0);
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    std::vector<Straggler> others(stragglers.begin(), stragglers.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    result.stragglers.push_back(
        {stragglers[i].text(), others.empty() ? result.clean : run(others, 0)});
  }
}

StepSample sample_steps(std::span<const Straggler> stragglers, std::int64_t count,
                        std::uint64_t seed, int threads, const RunStep& run) {
  StepSample sample;
  sample.seed = seed;
  sample.totals.resize(static_cast<std::size_t>(count));
  std::vector<std::exception_ptr> errors(sample.totals.size());
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t step = next++; step < count; step = next++) {
      try {
        sample.totals[static_cast<std::size_t>(step)] = run(stragglers, step);
      } catch (...) {
        errors[static_cast<std::size_t>(step)] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < std::min<std::int64_t>(threads, count); ++i) {
    others.emplace_back(work);
  }
  work();
  for (std::thread& other : others) {
    other.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  summarise(sample);
  return sample;
}

void summarise(StepSample& sample) {
  std::vector<Time> sorted = sample.totals;
  std::ranges::sort(sorted);
  LOCKSTEP_CHECK(!sorted.empty(), "a sample has steps");
  const auto n = static_cast<double>(sorted.size());
  double sum = 0, squares = 0;
  for (const Time total : sorted) {
    sum += static_cast<double>(total.count_ps());
  }
  const double mean = sum / n;
  for (const Time total : sorted) {
    const double off = static_cast<double>(total.count_ps()) - mean;
    squares += off * off;
  }
  const double deviation = sorted.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  const auto rank = [&](double share) {
    const auto index = static_cast<std::size_t>(std::ceil(share * n));
    return sorted[std::clamp<std::size_t>(index, 1, sorted.size()) - 1];
  };
  sample.mean = Time::ps(std::llround(mean));
  sample.deviation = Time::ps(std::llround(deviation));
  sample.half_width = Time::ps(std::llround(1.96 * deviation / std::sqrt(n)));
  sample.p50 = rank(0.5);
  sample.p90 = rank(0.9);
  sample.p99 = rank(0.99);
}

}  // namespace lockstep
