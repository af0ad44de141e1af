#pragma once

#include <functional>
#include <vector>

#include "profiler/cuda/check.h"
#include "profiler/device.h"

namespace lockstep::cuda {

/// Enqueues one run of an operator.
using Launch = std::function<void(cudaStream_t)>;

/// Times operators with events. Before each run that counts the L2 cache is overwritten, which also
/// keeps the GPU busy until the host has enqueued the run, so that no gap between launches is
/// timed. With `graph` an operator of several kernels is one CUDA graph.
///
/// A GPU in training is at its power limit, and its clock is what that leaves: a quarter below the
/// highest beside products without end. An operator that is timed alone would see the highest clock
/// for some milliseconds. So a product runs before each run that counts, and for some time before
/// the first: the clock is the one that the GPU keeps. What takes 5 ms and more needs none.
class Timer {
 public:
  explicit Timer(std::int64_t l2_bytes);

  /// What runs before each run, unless TimingOptions say otherwise.
  void set_load(Launch load) { load_ = std::move(load); }
  /// Seconds of each run: as many as wanted, or fewer of what takes long (TimingOptions). ERRORS:
  /// what the launches and kernels report.
  /// `meanwhile` is called while the GPU is at it.
  std::vector<double> time(const Launch& launch, bool graph, const TimingOptions& options,
                           const std::function<void()>& meanwhile = {});
  /// The least of some runs, for choosing among candidates.
  double quick(const Launch& launch, int runs);
  Stream& stream() { return stream_; }
  /// Overwrites the L2 cache, which keeps the GPU busy for about 50 us.
  void flush();

 private:
  Stream stream_;
  Buffer scratch_;
  Launch load_;
};

}  // namespace lockstep::cuda
