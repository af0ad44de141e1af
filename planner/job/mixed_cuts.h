#pragma once

#include <cstdint>
#include <vector>

#include "planner/job/mixed_plan.h"

namespace lockstep {

/// What all pipelines of a plan have in common.
struct MixedCut {
  /// Without a model; of one stage and one pipeline. `vpp` is of pipelines of several stages;
  /// `hsdp_replicas` is 1.
  Job job;
  std::int64_t copies = 1;  ///< MixedJob::copies
  bool hybrid = false;      ///< hybrid sharding: each pipeline's stage shards by itself
  std::size_t unit = 0;     ///< cuts of one unit differ in chunks, ZeRO and copies alone

  std::int64_t width() const { return job.gpus; }  ///< ranks of a stage
  RankLayout layout() const;                       ///< of a stage's ranks
};

/// With more GPUs, cp, chunks, ZeRO-2 and 3 are in the space only where the user names them: their
/// replays are many, and long.
inline constexpr std::int64_t kMostFreeGpus = 64;

/// All cuts that the problem's axes and check_job() allow, each once, in a fixed order. Free:
///
///   tp     powers of two up to the largest server
///   cp     as job_nodes(); context communication as the base has it
///   ep     of models with experts: divisors of their number that a stage of one pool can hold;
///          experts' tp 1 or tp. A pipeline has as many copies as experts are cut over
///   chunks a stage, microbatch, recomputation, sequence parallelism   as job_nodes()
///   ZeRO   0 to 3; of models without experts also 3 by hybrid sharding, with as many copies as
///          fill a server of every pool
///
/// But above kMostFreeGpus GPUs cp 1, one chunk, and ZeRO 0 and 1.
std::vector<MixedCut> mixed_cuts(const MixedProblem& problem, LeftOut& left_out);

}  // namespace lockstep
