#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace_events.h"
#include "workloads/comm.h"

namespace lockstep {

/// What a GPU's kernels of NCCL were asked to do, in traces of PyTorch's profiler whose kernels do
/// not say it: before PyTorch 2.2, or of calls that it does not describe. With record_shapes=True
/// the host's calls have their tensors' shapes, and a kernel is of the call within which it was
/// launched ("cudaLaunchKernel…", by the kernel's correlation):
///
///     c10d::_allgather_base_    Input Dims [[1024, 32], [512, 32], []]    2 = out / in ranks
///       nccl:_all_gather_base   Input Dims [[512, 32]], Input type ["float"]
///         cudaLaunchKernelExC   correlation 451047  ->  the kernel
class HostCalls {
 public:
  struct Asked {
    CommType op = CommType::kNone;
    std::string_view pattern;  ///< "gather" or "scatter", which NCCL carries out as send/receives
    std::int64_t bytes = -1;   ///< of the tensors that one rank puts in; -1: not recorded
    std::int32_t ranks = 0;    ///< of the group; 0: not to be seen
  };

  /// An event of the host; what is neither a call of communication nor a launch is passed over.
  void take(const TraceEvent& event);
  /// The call behind a kernel, once all events are taken. O(log calls).
  std::optional<Asked> behind(std::int64_t correlation);
  /// When the host launched a kernel or copy, in microseconds; nothing: not recorded. O(log calls).
  std::optional<double> launched_at(std::int64_t correlation);

 private:
  struct Call {
    std::int32_t thread = 0;
    double begin_us = 0, end_us = 0;
    Asked asked;
  };
  struct Launch {
    std::int64_t correlation = 0;
    std::int32_t thread = 0;
    double at_us = 0;
  };
  std::int32_t thread_of(const TraceEvent& event);
  void sort();
  const Launch* launch_of(std::int64_t correlation);

  std::map<std::string, std::int32_t, std::less<>> threads_;  // by process and thread
  std::string last_thread_;
  std::int32_t last_number_ = -1;
  std::vector<Call> calls_;
  std::vector<Launch> launches_;
  bool sorted_ = false;
};

/// Bytes of an element by PyTorch's word for its type ("BFloat16", "c10::Half", "long int"); 0:
/// unknown.
std::int64_t element_bytes(std::string_view dtype);

}  // namespace lockstep
