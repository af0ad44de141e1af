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
/// timed. An operator of several kernels is one CUDA graph.
class Timer {
 public:
  explicit Timer(std::int64_t l2_bytes);

  /// Seconds of each run. ERRORS: what the launches and kernels report.
  std::vector<double> time(const Launch& launch, bool graph, const TimingOptions& options);
  /// The least of some runs, for choosing among candidates.
  double quick(const Launch& launch, int runs);
  Stream& stream() { return stream_; }

 private:
  void flush();

  Stream stream_;
  Buffer scratch_;
};

}  // namespace lockstep::cuda
