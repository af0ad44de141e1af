#pragma once

#include <string>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/custom/msccl_xml.h"

namespace lockstep {

/// Runs an MSCCL program symbolically, which proves it right, and turns it into a schedule.
///
/// A location (GPU, buffer, chunk) holds which chunk of the tensor and whose contributions. Blocks
/// run in turn, each as far as it can: a receive needs the matching send, the k-th on the same
/// channel from that GPU; a dependency needs the other block's step. At the end every output
/// location must hold what the operation promises. The program is run a second time with the blocks
/// in the opposite order: where that gives something else, it has a race.
///
/// A send becomes a transfer, a slot of its own, that waits for what its GPU must have received
/// before: by its block's order, by dependencies, and by what it forwards. A chunk has
/// request.bytes / nchunksperloop; where MSCCL would loop over larger tensors, chunks are larger.
///
/// The schedule names the chunks by their place in the tensor. check_schedule() cannot follow
/// partial sums that wait apart in scratch buffers, hence the proof here.
/// PRECONDITION: request.op == program.op. ERRORS: Error with file and line: what is received but
/// not sent or sent but not received, what is used before it is there, added twice, wrong at the
/// end; a program for another number of GPUs than `shape` has; one that cannot go on.
Schedule msccl_schedule(const MscclProgram& program, const std::string& file,
                        const CollectiveRequest& request, const GroupShape& shape);

}  // namespace lockstep
