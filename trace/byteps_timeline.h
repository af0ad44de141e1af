#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trace/timeline.h"

namespace lockstep {

/// One of several steps that follow each other.
struct StepPicture {
  Timeline timeline;
  Time begin;  ///< of the step, since the first
};

/// The communication of gradients and parameters on one rank in the layout of BytePS's
/// <trace folder>/<local rank>/comm.json: Trace Events whose process is the tensor, a "total" event
/// for each time that it is communicated and one for each queue type and partition beside it, the
/// partition's key as its thread.
///
/// A tensor here is what one collective carries (a bucket of gradients, its parameters), one
/// partition: key 65536 times the tensor's number. Collectives of one name in a step (the buckets)
/// are told apart by a number behind it, in the order in which they begin. The queue types are
/// those in which BytePS runs the same NCCL calls: REDUCE for reduce-scatters, BROADCAST for
/// all-gathers; an all-reduce has one event of type REDUCE, as its two halves have no boundary in
/// time. Taken are events on tracks that are named "dp…" of the rank's own track at the top; times
/// are microseconds with all picoseconds. Empty where the rank has no track.
std::string byteps_comm_json(std::span<const StepPicture> steps, std::int32_t rank);

}  // namespace lockstep
