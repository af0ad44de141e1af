#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/critical_path.h"
#include "simulator/replay/memory_timeline.h"
#include "workloads/workload.h"

namespace lockstep {

/// What one phase of a layer cost on the reporting rank.
struct PhaseResult {
  Time compute;
  Time exposed;  ///< time in which the rank computed nothing because of this communication
  Time comm;     ///< issue to completion
  Bytes bytes;   ///< the full tensor
  CommType comm_type = CommType::kNone;
  GroupKind group = GroupKind::kTp;
  std::int32_t group_size = 1;
};

struct LayerResult {
  std::int32_t name = 0;  ///< index into StepResult::names
  PhaseResult forward, input_grad, weight_grad;
};

/// One of the jobs that share the cluster.
struct JobResult {
  std::string name;
  std::int32_t first_rank = 0, ranks = 0;
  Time end;  ///< of its last rank
};

/// What one of the stragglers cost: the same step with all others.
struct StragglerCost {
  std::string spec;
  Time without;  ///< the step's time
};

/// The times of several steps that draw different numbers.
struct StepSample {  // of several jobs: of the first
  std::uint64_t seed = 0;
  std::vector<Time> totals;  ///< in the order of the steps
  Time mean, deviation;      ///< deviation: of a step, with n - 1
  Time half_width;  ///< of the 95 % interval of the mean: t deviation / sqrt(n) (base/student_t.h)
  Time p50, p90, p99;  ///< by nearest rank
};

/// One simulated training step. Plain data between the simulation and whatever shows it.
struct StepResult {
  std::string workload, topology;  ///< as the user named them
  std::string engine;              ///< "analytic", "flow", "packet"
  std::string semantics;           ///< "simai", …
  std::string flavour;             ///< "default" or "simai"
  std::string routes;              ///< "hashed" or "sprayed"; empty for the analytic engine
  Parallelism parallel;
  std::int32_t gpus = 0;  ///< of all jobs

  Time total;    ///< the step's time, with several jobs until the last one ends
  Time compute;  ///< of the reporting rank
  Time exposed;  ///< communication not hidden behind compute, PP included
  Time skew;     ///< part of `exposed`: from the end of the reporting rank to that of the last
  Time bubble;   ///< pipeline bubble
  Time others;   ///< with several jobs: from the first one's end to that of the last
  std::array<Time, 7> exposed_by_group{};  ///< by GroupKind
  std::vector<std::string> names;
  std::vector<LayerResult> layers;     ///< of the reporting rank (rank 0)
  Time first_rank_end, last_rank_end;  ///< spread over ranks
  std::vector<JobResult> jobs;         ///< in the workload's order; empty for the analytic engine
  std::vector<PortUse> ports;          ///< empty for the analytic engine
  std::optional<PacketStatistics> packets;  ///< of the packet engine: of what it simulated
  bool drawn = false;                       ///< waits of messages were drawn by seed: others differ
  std::optional<std::int64_t> compared;     ///< by verify_symmetry: ranks whose ends were equal
  std::int64_t flows = 0;                   ///< point-to-point transfers simulated
  std::int64_t replay_work = 0;             ///< ReplayResult::work
  std::int64_t recalled_flows = 0;  ///< of those, told from ones seen before (recalled_runs.h)
  Time error;                       ///< by how much `total` may be off for that
  std::vector<StragglerCost> stragglers;  ///< empty where there are none
  Time clean;                             ///< where there are: the step without any
  std::optional<StepSample> sample;
  std::optional<CriticalPath> critical;  ///< where it was asked for
  std::vector<MemoryTimeline> memory;    ///< where it was asked for
  std::vector<std::string> warnings;

  /// Of the first job, which figures of a job are of: when its step ends, and its GPUs. Of a lone
  /// job `total` and `gpus`.
  Time first_end() const { return total - others; }
  std::int64_t first_gpus() const { return jobs.size() > 1 ? parallel.gpus : gpus; }
  /// What a step of it is expected to take: the mean of a sample where there is one.
  Time mean_step() const { return sample ? sample->mean : first_end(); }
};

}  // namespace lockstep
