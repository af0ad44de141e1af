#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/program.h"
#include "workloads/workload.h"

namespace lockstep {

struct SimaiProgramOptions {
  /// SimAI to the letter: one queue of collectives a rank, newest first, one at a time; 3 ns of
  /// clock ticks a layer; forward messages of 1 … 4095 bytes grow to 4096; broadcasts do nothing;
  /// of each list of checkpoints the first entry counts. Otherwise each communicator has its own
  /// stream in program order, as NCCL's have, and there are no ticks.
  bool strict = false;
};

/// Which operations of the program belong to a layer; -1 where there is none.
struct LayerOps {
  struct Phase {
    std::int32_t compute = -1, comm = -1;
  };
  Phase forward, input_grad, weight_grad;
  std::vector<Phase> recomputed;  ///< each further run of the forward
};

struct SimaiProgram {
  RankPrograms ranks;
  std::vector<LayerOps> layers;  ///< in the order of LayerTable::layers
};

/// SimAI's iteration (HYBRID_TRANSFORMER_FWD_IN_BCKWD) as one program for all ranks: forward of
/// every layer in order, each with its communication awaited; then from the last layer back
/// input gradient (awaited) and weight gradient (not awaited). A layer that starts a checkpoint's
/// recomputation first repeats the forward from the nearest kept layer up to itself.
/// Communications of size 0 or in groups of one rank are left out.
/// ERRORS: those of parallel_groups(). O(layers).
SimaiProgram simai_program(const LayerTable& table, const Parallelism& parallel,
                           const SimaiProgramOptions& options);

}  // namespace lockstep
