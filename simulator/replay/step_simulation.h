#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "simulator/network/flow/flow_options.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/memory_timeline.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_detail.h"
#include "simulator/replay/step_result.h"
#include "simulator/replay/straggler.h"
#include "simulator/replay/traffic_classes.h"
#include "topologies/topology.h"
#include "trace/job_meta.h"
#include "trace/timeline.h"
#include "trace/trace.h"
#include "workloads/workload.h"

namespace lockstep {

struct KeptStep;
class SharedStep;

struct StepOptions {
  /// SimAI's rules to the letter (see docs/models.md): one queue of collectives a rank, no
  /// pipeline groups, rank 0's time as the step's, bubble and stage-to-stage transfers not added.
  bool simai_flavour = false;
  /// The job takes all GPUs of the topology, whatever the workload says (SimAI).
  bool all_gpus = false;
  Time send_latency = Time::us(6);
  std::optional<std::int64_t> chunks_per_stage;  ///< in place of the workload's vpp
  double pp_overlap = 0;  ///< share of stage-to-stage transfers hidden behind compute, 0 to 1
  Timeline* timeline = nullptr;  ///< filled when given
  /// When given, the first job's step is appended to it (step_trace.h), numbered `step`; and `meta`
  /// says of what job.
  Trace* trace = nullptr;
  JobMeta* meta = nullptr;
  bool trace_first_workers = false;  ///< the first of tensor- and context-parallel groups alone
  /// When given, what ranks of a stage hold: memory_timeline() of the first rank of each of the
  /// first job's programs.
  std::function<RankMemory(std::int32_t stage)> memory;
  bool explain = false;  ///< work out the critical path; keeps 24 B an operation and class of ranks
  StepDetail* detail = nullptr;  ///< filled when given; keeps as much
  /// How transfers are routed: for `explain`, which links limit the critical path; where they draw
  /// source ports, whether ways depend on these (NetworkEngine::meet_by_packets()).
  std::optional<FlowOptions> routes;
  /// Links fail, here or in a run that this one is compared with: messages do not meet by packets.
  bool fails_links = false;
  std::int32_t timeline_ranks = 0;  ///< ranks 0 … timeline_ranks-1 are drawn
  bool show_progress = false;
  /// With the flow engine's options the step is folded by symmetry where it can be (step_fold.h):
  /// the same result from fewer ranks. Else every rank is simulated on the network given.
  std::optional<FlowOptions> fold;
  /// In place of the others for TP groups, where it is set.
  ScheduleSource tensor_schedules;
  /// Where the step is not folded: collectives seen before need not be simulated again.
  std::optional<RecallOptions> recall;
  /// With `fold`: used and filled by simulations of one step that differ in speeds alone. The
  /// result then has no ports.
  KeptStep* kept = nullptr;
  /// Used by simulations of one step, on any threads, that differ in stragglers, seed and step
  /// alone; not beside `kept`.
  SharedStep* shared = nullptr;
  bool with_ports = true;  ///< of a folded step the result has what ports carried
  /// Simulate every rank as well and compare each one's end, and every operation of rank 0, to the
  /// picosecond. ERRORS: then Error if any differs.
  bool verify_symmetry = false;
  std::span<const Straggler> stragglers;  ///< what is slower than it should be
  std::uint64_t seed = 0;                 ///< of what they draw
  std::int64_t step = 0;                  ///< which step: another one draws other numbers
  Interference interference;              ///< of collectives with computations beside them
  TrafficClasses traffic_classes;         ///< for networks that have them
  ReplayLimits limits;                    ///< ERRORS: ReplayGivenUp where they are reached
};

/// Makes a network at time 0; every call gives an independent one.
using NetworkFactory = std::function<std::unique_ptr<NetworkEngine>()>;

/// Simulates one training step of every job of a workload, all ranks, on a network; the ranks of
/// the first job run on the first GPUs, those of the second on the next ones, and so on.
/// Layer tables follow SimAI's iteration (simai_program.h); pipeline stages of such a table run
/// alike, so the bubble and the transfers between stages are added by formula:
///     bubble = sum over layers but the embedding of (fwd + ig + wg) * (pp - 1) / (ga * vpp)
///     pp     = 2 * vpp * ga * (time of pp_comm bytes from one stage to the next) * (1 -
///     pp_overlap)
/// The table of layers is that of the first job's rank 0.
/// ERRORS: Error when the topology has too few GPUs, and those of replay().
StepResult simulate_step(const Workload& workload, const Topology& topology,
                         const NetworkFactory& network, const ScheduleSource& schedules,
                         const StepOptions& options);

}  // namespace lockstep
