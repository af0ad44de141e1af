#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "workloads/comm.h"

namespace lockstep {

/// A collective or message that one rank takes part in.
struct CommCall {
  CommType comm = CommType::kNone;
  int group = -1;  ///< as Transport::add_group() numbered it
  std::int64_t bytes =
      0;  ///< the full tensor: all-gather output, reduce-scatter input, all-to-all buffer
  std::int32_t peer = -1;  ///< messages: the other rank, in the world
  bool send = false;       ///< messages: to the peer, or from it
};

/// A matrix product of `m` x `k` by `k` x `n`, or just time that passes.
struct ComputeCall {
  std::int64_t m = 0, n = 0, k = 0;  ///< all 0: idle for `idle`
  Time idle;
};

/// What carries out a rank's work. Every rank makes the same groups in the same order and calls
/// collectives of a group in the same order. Not thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Bytes that identify a world, made by rank 0 and handed to all.
  virtual std::string make_id() = 0;
  virtual void join(int rank, int world, const std::string& id, std::int64_t largest_bytes) = 0;
  /// Ranks of the world, ascending, among them this one; or not, then nothing is done. Collective
  /// over the world. Returns the group's number, from 0.
  virtual int add_group(std::span<const std::int32_t> ranks) = 0;
  /// Seconds it took on this rank. ERRORS: Error with the library's reason; another rank's failure.
  virtual double communicate(const CommCall& call) = 0;
  virtual double compute(const ComputeCall& call) = 0;
  /// Waits until all of this rank's work has ended.
  virtual void synchronise() = 0;
  /// Ends all that is under way so that join() and communicate() return with an error. May be
  /// called from another thread.
  virtual void stop() noexcept = 0;
  virtual std::string name() const = 0;  ///< "nccl 2.28.3 on NVIDIA H200"
};

}  // namespace lockstep
