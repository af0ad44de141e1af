#include "analysis/goodput/goodput.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string>

#include "base/parallel.h"
#include "base/rng.h"
#include "base/stop_signal.h"
#include "base/student_t.h"

namespace lockstep {
namespace {

/// Of Weibull's distribution: mean = scale Gamma(1 + 1 / shape).
double scale_of(const LongRun& run) { return run.mtbf_s / std::tgamma(1 + 1 / run.shape); }

class Player {
 public:
  Player(const LongRun& run, std::uint64_t seed, std::int64_t number)
      : run_(run),
        draws_(seed, "goodput/steps " + std::to_string(number)),
        fate_(seed, "goodput/failures " + std::to_string(number)),
        scale_(scale_of(run)),
        spares_(run.spares) {
    next_failure_ = between_failures();
  }

  RunTime play() {
    while (now_ < run_.horizon_s) {
      throw_if_stopped();
      if (since_checkpoint_ >= run_.interval && pending_ == 0) {
        checkpoint();
      } else {
        step();
      }
    }
    // What was done since the last safe checkpoint is not lost yet when the run ends.
    keep(pending_s_, pending_);
    keep(work_s_, since_checkpoint_);
    return out_;
  }

 private:
  double between_failures() {
    return scale_ * std::pow(-std::log1p(-fate_.uniform()), 1 / run_.shape);
  }

  struct Passed {
    double seconds;
    bool whole;  // neither a failure nor the end came before its end
  };
  Passed pass(double length) {
    const double wanted = now_ + length;
    const double until = std::min({wanted, next_failure_, run_.horizon_s});
    const Passed passed{until - now_, until == wanted};
    now_ = until;
    return passed;
  }
  bool failed() const { return now_ >= next_failure_ && now_ < run_.horizon_s; }

  void keep(double& seconds, std::int64_t& steps) {
    out_.useful_s += seconds;
    out_.steps += steps;
    seconds = 0;
    steps = 0;
  }

  /// What waits to be safe is so by now.
  void settle() {
    if (pending_ > 0 && now_ >= safe_at_) {
      keep(pending_s_, pending_);
    }
  }

  void step() {
    const double length = run_.steps_s[draws_.below(run_.steps_s.size())];
    const Passed passed = pass(length);
    settle();
    if (passed.whole) {
      work_s_ += passed.seconds;
      ++since_checkpoint_;
    } else {
      out_.lost_s += passed.seconds;  // begun
    }
    if (failed()) {
      fail();
    }
  }

  /// PRECONDITION: none is on its way to be safe.
  void checkpoint() {
    const Passed passed = pass(run_.checkpoint_s);
    out_.checkpoint_s += passed.seconds;
    if (passed.whole) {
      pending_s_ = work_s_;
      pending_ = since_checkpoint_;
      work_s_ = 0;
      since_checkpoint_ = 0;
      safe_at_ = now_ + run_.drain_s;
      settle();
    }
    if (failed()) {
      fail();
    }
  }

  void fail() {
    out_.lost_s += work_s_ + pending_s_;
    work_s_ = pending_s_ = 0;
    since_checkpoint_ = pending_ = 0;
    for (bool up = false; !up && now_ < run_.horizon_s;) {
      throw_if_stopped();
      ++out_.failures;
      take_spare();
      next_failure_ = now_ + between_failures();
      out_.restart_s += pass(run_.restart_s).seconds;
      up = !failed();
    }
  }

  void take_spare() {
    if (run_.spares < 0) {
      return;
    }
    repairs_.push(now_ + run_.repair_s);
    while (!repairs_.empty() && repairs_.top() <= now_) {
      repairs_.pop();
      ++spares_;
    }
    if (spares_ == 0) {
      const double until = std::min(repairs_.top(), run_.horizon_s);
      repairs_.pop();
      out_.waiting_s += until - now_;
      now_ = until;
      return;
    }
    --spares_;
  }

  const LongRun& run_;
  Rng draws_, fate_;
  double scale_;
  std::int64_t spares_;
  RunTime out_;
  double now_ = 0, next_failure_ = 0;
  double work_s_ = 0;  // since the last checkpoint
  std::int64_t since_checkpoint_ = 0;
  double pending_s_ = 0, safe_at_ = 0;  // of a checkpoint that is not safe yet
  std::int64_t pending_ = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs_;
};

template <class Get>
Estimate estimate(const std::vector<RunTime>& runs, const Get& get) {
  const auto n = static_cast<double>(runs.size());
  Estimate out;
  double sum = 0, lost = 0;  // Kahan: the mean of equal runs is what each has
  for (const RunTime& run : runs) {
    const double value = get(run) - lost, next = sum + value;
    lost = (next - sum) - value;
    sum = next;
  }
  out.mean = sum / n;
  double squares = 0;
  for (const RunTime& run : runs) {
    squares += (get(run) - out.mean) * (get(run) - out.mean);
  }
  out.half_width =
      runs.size() > 1 ? student_t_95(runs.size()) * std::sqrt(squares / (n - 1) / n) : 0;
  return out;
}

}  // namespace

RunTime play(const LongRun& run, std::uint64_t seed, std::int64_t number) {
  return Player(run, seed, number).play();
}

LongRunResult play_many(const LongRun& run, std::uint64_t seed, std::int64_t count, int threads) {
  LongRunResult result;
  result.runs.resize(static_cast<std::size_t>(count));
  std::vector<char> done(result.runs.size());  // not bool: threads write at the same time
  try {
    for_each_in_parallel(result.runs.size(), threads, [&](std::size_t i) {
      throw_if_stopped();
      result.runs[i] = play(run, seed, static_cast<std::int64_t>(i));
      done[i] = 1;
    });
  } catch (const Interrupted&) {
    const auto first_missing = std::ranges::find(done, 0);
    if (first_missing == done.begin()) {
      throw;
    }
    result.runs.resize(static_cast<std::size_t>(first_missing - done.begin()));
  }
  const double days = run.horizon_s / 86400;
  result.goodput =
      estimate(result.runs, [&](const RunTime& one) { return one.useful_s / run.horizon_s; });
  result.steps =
      estimate(result.runs, [](const RunTime& one) { return static_cast<double>(one.steps); });
  result.failures =
      estimate(result.runs, [](const RunTime& one) { return static_cast<double>(one.failures); });
  result.tokens_per_day = estimate(result.runs, [&](const RunTime& one) {
    return static_cast<double>(one.steps) * run.tokens_per_step / days;
  });
  for (const auto part : {&RunTime::useful_s, &RunTime::lost_s, &RunTime::checkpoint_s,
                          &RunTime::restart_s, &RunTime::waiting_s}) {
    result.mean.*part = estimate(result.runs, [&](const RunTime& one) { return one.*part; }).mean;
  }
  return result;
}

double most_failures(const LongRun& run) {
  const double once = std::tgamma(1 + 1 / run.shape), twice = std::tgamma(1 + 2 / run.shape);
  const double lorden = run.horizon_s / run.mtbf_s + twice / (once * once) - 1;
  // F + F^2 + … with F = 1 - e^-x, the chance of a time that ends before the horizon.
  return std::min(lorden, std::expm1(std::pow(run.horizon_s / scale_of(run), run.shape)));
}

double chance_of_progress(const LongRun& run) {
  const double least =
      run.restart_s + *std::ranges::min_element(run.steps_s) + run.checkpoint_s + run.drain_s;
  return std::exp(-std::pow(least / scale_of(run), run.shape));
}

std::int64_t spares_needed(double mtbf_s, double repair_s, double wanted) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const double mean = repair_s / mtbf_s;
  if (mean >= static_cast<double>(kMost)) {
    return kMost;
  }
  // P(fewer than k are away) >= wanted, by logarithms so that large means do not underflow. Forty
  // deviations below the mean there is nothing to add up.
  auto k = static_cast<std::int64_t>(std::max(0.0, mean - 40 * std::sqrt(mean)));
  double sum = 0, log_term = -mean;
  if (k > 0) {
    log_term += static_cast<double>(k) * std::log(mean) - std::lgamma(static_cast<double>(k) + 1);
  }
  while (sum < wanted && k < kMost) {
    sum += std::exp(log_term);
    ++k;
    log_term += std::log(mean) - std::log(static_cast<double>(k));
  }
  return k;
}

}  // namespace lockstep
