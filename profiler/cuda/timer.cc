#include "profiler/cuda/timer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

namespace lockstep::cuda {
namespace {

/// A graph of what a launch enqueues.
class Graph {
 public:
  Graph(const Launch& launch, const Stream& stream) {
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "graph");
    try {
      launch(stream.get());
    } catch (...) {
      (void)cudaStreamEndCapture(stream.get(), &graph_);
      (void)cudaGraphDestroy(graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream.get(), &graph_), "graph");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "graph");
  }
  ~Graph() {
    (void)cudaGraphExecDestroy(executable_);
    (void)cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const {
    check(cudaGraphLaunch(executable_, stream.get()), "graph");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

constexpr std::int64_t kLeastScratch = std::int64_t{256} << 20;
constexpr double kLong = 5e-3;    // seconds of an operator that needs no warming up
constexpr int kLoadsBefore = 25;  // about 20 ms, after which the clock stays where it is
constexpr auto kCoolDown = std::chrono::milliseconds(100);
constexpr int kPauses = 4;        // times the operator's own time, at the highest clock
constexpr double kLongest = 0.2;  // seconds for all samples of an operator …
constexpr int kLeastSamples = 5;  // … of which so many are taken in any case

int samples_of(double seconds, int wanted) {
  const double fit = kLongest / seconds;
  return fit >= wanted ? wanted
                       : std::clamp(static_cast<int>(fit), std::min(kLeastSamples, wanted), wanted);
}

}  // namespace

// Twice the cache at least, and enough to keep the GPU busy for about 50 us.
Timer::Timer(std::int64_t l2_bytes) : scratch_(std::max(2 * l2_bytes, kLeastScratch), nullptr) {}

void Timer::flush() {
  check(
      cudaMemsetAsync(scratch_.get(), 1, static_cast<std::size_t>(scratch_.size()), stream_.get()),
      "cudaMemsetAsync");
}

std::vector<double> Timer::time(const Launch& launch, bool graph, const TimingOptions& options,
                                const std::function<void()>& meanwhile) {
  const double once = quick(launch, 1);
  for (int i = 0; i < options.warmups && once < kLong; ++i) {
    launch(stream_.get());
  }
  stream_.synchronise();
  const std::unique_ptr<Graph> captured =
      graph ? std::make_unique<Graph>(launch, stream_) : nullptr;
  if (captured) {
    captured->launch(stream_);  // the first launch uploads it
    stream_.synchronise();
  }
  const auto count = static_cast<std::size_t>(samples_of(once, options.samples));
  const std::vector<Event> begin(count), end(count);
  const bool loaded = options.load && load_ && once < kLong;
  const auto prepare = [&] {
    if (loaded) {
      load_(stream_.get());
    }
    if (options.flush_l2) {
      flush();
    }
  };
  for (int i = 0; i < kLoadsBefore && loaded; ++i) {
    prepare();
  }
  if (!options.load) {
    std::this_thread::sleep_for(kCoolDown);
  }
  for (std::size_t i = 0; i < count; ++i) {
    prepare();
    begin[i].record(stream_);
    if (captured) {
      captured->launch(stream_);
    } else {
      launch(stream_.get());
    }
    end[i].record(stream_);
    if (!options.load && i + 1 < count) {
      stream_.synchronise();
      std::this_thread::sleep_for(kPauses *
                                  std::chrono::duration<double>(seconds_between(begin[i], end[i])));
    }
  }
  if (meanwhile) {
    meanwhile();
  }
  stream_.synchronise();
  check(cudaGetLastError(), "kernel");
  std::vector<double> seconds;
  for (std::size_t i = 0; i < count; ++i) {
    seconds.push_back(seconds_between(begin[i], end[i]));
  }
  return seconds;
}

double Timer::quick(const Launch& launch, int runs) {
  launch(stream_.get());
  double least = std::numeric_limits<double>::infinity();
  const Event begin, end;
  for (int i = 0; i < runs; ++i) {
    flush();
    begin.record(stream_);
    launch(stream_.get());
    end.record(stream_);
    stream_.synchronise();
    least = std::min(least, seconds_between(begin, end));
  }
  check(cudaGetLastError(), "kernel");
  return least;
}

}  // namespace lockstep::cuda
