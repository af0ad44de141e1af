#include "simulator/replay/step_sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/stop_signal.h"
#include "base/student_t.h"

namespace lockstep {

std::size_t runs_to_price(std::size_t stragglers) {
  return stragglers > 1 ? stragglers + 2 : stragglers + 1;
}

StepResult price_stragglers(std::span<const Straggler> stragglers, int threads,
                            const std::function<StepResult()>& step, const RunStep& run) {
  if (stragglers.empty()) {
    return step();
  }
  // Run 0 is the step, run 1 without any, run i + 1 without straggler i - 1; a lone one's is run 1.
  const std::size_t further = runs_to_price(stragglers.size()) - 1;
  StepResult result;
  std::vector<Time> totals(further);
  for_each_in_parallel(1 + further, threads, [&](std::size_t i) {
    if (i == 0) {
      result = step();
      return;
    }
    std::vector<Straggler> others;
    if (i > 1) {
      others.assign(stragglers.begin(), stragglers.end());
      for (std::size_t place = 0; place < others.size(); ++place) {
        others[place].keep_place(place);
      }
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i) - 2);
    }
    totals[i - 1] = run(others, 0);
  });
  result.clean = totals.front();
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    result.stragglers.push_back({stragglers[i].text(), totals[further == 1 ? 0 : i + 1]});
  }
  return result;
}

StepSample sample_steps(std::span<const Straggler> stragglers, std::int64_t count,
                        std::uint64_t seed, int threads, const RunStep& run) {
  StepSample sample;
  sample.seed = seed;
  sample.totals.resize(static_cast<std::size_t>(count));
  std::vector<char> done(sample.totals.size());  // not bool: threads write at the same time
  try {
    for_each_in_parallel(sample.totals.size(), threads, [&](std::size_t step) {
      throw_if_stopped();
      sample.totals[step] = run(stragglers, static_cast<std::int64_t>(step));
      done[step] = 1;
    });
  } catch (const Interrupted&) {
    const auto first_missing = std::ranges::find(done, 0);
    if (first_missing == done.begin()) {
      throw;
    }
    sample.totals.resize(static_cast<std::size_t>(first_missing - done.begin()));
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
  sample.half_width =
      Time::ps(std::llround(student_t_95(sorted.size()) * deviation / std::sqrt(n)));
  sample.p50 = rank(0.5);
  sample.p90 = rank(0.9);
  sample.p99 = rank(0.99);
}

}  // namespace lockstep
