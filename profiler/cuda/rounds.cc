#include "profiler/cuda/rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

namespace lockstep::cuda {
namespace {

constexpr double kSeconds = 1.2;  // of all rounds
constexpr double kWarmUp = 0.05;  // seconds before the first that counts
constexpr std::int64_t kMostRounds = 4000;
constexpr std::int64_t kLeastRuns = 5;  // of each part
constexpr double kHostSeconds = 10e-6;  // to enqueue a part and its events
constexpr double kFlushSeconds = 50e-6;

/// Whether a part that runs `runs` times in so many rounds is in this one: evenly spread.
bool is_in(std::int64_t round, std::int64_t runs, std::int64_t rounds) {
  return (round + 1) * runs / rounds > round * runs / rounds;
}

}  // namespace

std::vector<std::vector<double>> time_rounds(Timer& timer, std::span<const RoundPart> parts,
                                             int samples, const std::function<void()>& meanwhile) {
  std::int64_t most = 1, least = std::numeric_limits<std::int64_t>::max();
  for (const RoundPart& part : parts) {
    most = std::max(most, part.times);
    least = std::min(least, part.times);
  }
  double round_s = 0, launches = 0;
  for (const RoundPart& part : parts) {
    const double share = static_cast<double>(part.times) / static_cast<double>(most);
    round_s += share * timer.quick(part.launch, 1);
    launches += share;
  }
  const std::int64_t wanted = samples * most / std::max<std::int64_t>(1, least);
  const auto fit = static_cast<std::int64_t>(kSeconds / round_s);
  const std::int64_t rounds =
      std::clamp(std::min(wanted, fit), std::min<std::int64_t>(samples, kMostRounds), kMostRounds);
  const std::int64_t warmups = std::max<std::int64_t>(2, std::llround(kWarmUp / round_s));
  // Where kernels are shorter than their launches the host gets a start.
  const double late = std::max(0.0, launches * kHostSeconds - round_s);
  const int flushes = static_cast<int>(std::ceil(late / kFlushSeconds));

  struct Run {
    Event begin, end;
  };
  std::vector<std::list<Run>> events(parts.size());
  std::vector<std::int64_t> runs, done(parts.size(), 0);
  for (const RoundPart& part : parts) {
    runs.push_back(std::clamp(rounds * part.times / most, std::min(kLeastRuns, rounds), rounds));
  }
  Stream& stream = timer.stream();
  for (std::int64_t round = -warmups; round < rounds; ++round) {
    for (int i = 0; i < flushes; ++i) {
      timer.flush();
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!is_in(std::max<std::int64_t>(0, round + (round < 0 ? warmups : 0)), runs[i], rounds)) {
        continue;
      }
      if (round < 0 || ++done[i] <= runs[i] - samples) {
        parts[i].launch(stream.get());
        continue;
      }
      Run& run = events[i].emplace_back();
      run.begin.record(stream);
      parts[i].launch(stream.get());
      run.end.record(stream);
    }
  }
  if (meanwhile) {
    meanwhile();
  }
  stream.synchronise();
  check(cudaGetLastError(), "kernel");
  std::vector<std::vector<double>> seconds(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const Run& run : events[i]) {
      seconds[i].push_back(seconds_between(run.begin, run.end));
    }
  }
  return seconds;
}

}  // namespace lockstep::cuda
