#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"
#include "workloads/comm.h"

namespace lockstep {

/// A collective or message that one rank takes part in.
struct CommCall {
  CommType comm = CommType::kNone;
  int group = -1;  ///< as Transport::add_group() numbered it; a message's: its sender, its receiver
  std::int64_t bytes =
      0;  ///< the full tensor: all-gather output, reduce-scatter input, all-to-all buffer
  std::int32_t root = 0;  ///< broadcast and reduce: whose place in the group
  bool send = false;      ///< messages: to the other rank, or from it
};

/// A matrix product of `m` x `k` by `k` x `n`, or just time that passes.
struct ComputeCall {
  std::int64_t m = 0, n = 0, k = 0;  ///< all 0: idle for `idle`
  Time idle;
  friend bool operator==(const ComputeCall&, const ComputeCall&) = default;
};

/// What a transport is given to do: a communication, or where there is none, a computation. It
/// begins when what came before it on its stream has ended, what came before it in its group, and
/// all that `after` names.
struct Work {
  CommCall call;
  ComputeCall compute;
  int stream = 0;
  std::span<const std::int32_t> after;  ///< numbers of earlier work
  std::string_view text;                ///< for messages to people
};

/// When work was done, in seconds since its batch began.
struct WorkTime {
  double begin_s = 0, seconds = 0;
};

/// A rank's place among those that a transport joins.
struct TransportWorld {
  int rank = 0, world = 1;
  std::string id;  ///< of make_id()
  std::int64_t largest_bytes = 0;
  int streams = 1;
};

/// What carries out a rank's work, on streams that run side by side. Every rank makes the same
/// groups in the same order and starts the work of a group in the same order. Not thread-safe but
/// for stop(). Calls end with an Error: the library's reason, or that it was stopped.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Bytes that identify a world, made by rank 0 and handed to all.
  virtual std::string make_id() = 0;
  virtual void join(const TransportWorld& world) = 0;
  /// Ranks of the world in the order of their places, among them this one; or not, then nothing is
  /// done. `messages`: the group is for messages from the first of two to the other, else for
  /// collectives. Collective over the world. Returns the group's number, from 0.
  virtual int add_group(std::span<const std::int32_t> ranks, bool messages) = 0;
  /// A computation that will be started on that stream: what can be done beforehand is.
  virtual void prepare(const ComputeCall& call, int stream) = 0;

  /// All work so far has ended: from now on it is numbered from 0 again.
  virtual void begin_batch() = 0;
  /// Has it done as soon as its turn comes, and does not wait for that.
  virtual void start(const Work& work) = 0;
  virtual bool has_ended(std::size_t number) = 0;
  /// PRECONDITION: has_ended().
  virtual WorkTime time_of(std::size_t number) = 0;
  /// Called when there is nothing to do but wait: a short time passes.
  virtual void pause() = 0;

  /// After the last work of all ranks: ends the world in good order. Collective.
  virtual void leave() = 0;
  /// Has all calls, those under way among them, end with an error. May be called from another
  /// thread.
  virtual void stop() noexcept = 0;
  virtual std::string name() const = 0;  ///< "nccl 2.28.3 on NVIDIA H200"
};

}  // namespace lockstep
