#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/interference.h"
#include "simulator/replay/program.h"
#include "simulator/replay/recall_options.h"
#include "topologies/topology.h"

namespace lockstep {

/// When an operation became ready (its predecessors had ended), began and ended on one rank.
struct OpTiming {
  Time ready, begin, end;
  /// Since when only the network kept it. Of a message, when its sender entered it, maybe before
  /// its receiver did; of a collective, when its last rank did; of a computation, `begin`.
  Time moved = Time();
  /// Of a computation: how much longer it took for the collectives beside it (Interference).
  Time slowed = Time();
};

/// From `when` on a port keeps `share` of its bandwidth.
struct NetworkChange {
  Time when;
  PortId port;
  double share = 1;
  // For networks that can lose packets: the share without what losses cost, and the probability.
  double share_beside_loss = 1, loss = 0;
};

/// When a replay is given up, for those that try many (a planner).
struct ReplayLimits {
  /// Operations of all ranks simulated, one rank of each class where the step is folded; 0: any.
  /// Checked before anything runs, and when a folded step's classes split.
  std::int64_t most_ops = 0;
  /// ReplayResult::work so far, and the moments of a folded step's network; 0: any.
  std::int64_t most_work = 0;
  /// Asked between points of time; true ends the replay. Not in the libraries' hands to be the same
  /// on every machine.
  std::function<bool()> stop;
  /// For those whom a longer step does not interest: one that is not done by then is given up.
  Time latest = Time::max();
};

/// A replay that was given up as ReplayLimits says.
class ReplayGivenUp : public Error {
 public:
  ReplayGivenUp(const std::string& why, std::int64_t work, bool late = false)
      : Error(why), work_(work), late_(late) {}
  /// ReplayResult::work up to then; 0 where the operations were too many.
  std::int64_t work() const { return work_; }
  /// The step was not done by ReplayLimits::latest.
  bool late() const { return late_; }

 private:
  std::int64_t work_;
  bool late_;
};

/// Builds (or finds) the schedule of a collective; equal arguments give equal schedules.
using ScheduleSource =
    std::function<std::shared_ptr<const Schedule>(CommType op, Bytes bytes, const GroupShape&)>;

struct ReplayOptions {
  /// From the moment a transfer may start to its first bit: software and NIC, per transfer.
  Time send_latency = Time::us(6);
  /// Added to transfers of a reduce-scatter that wait for another (SimAI: 30 ns of memory access),
  /// and where steps are taken in order to those that SimAI counts (CollectiveRuns::memory_time()).
  Time reduce_latency;
  /// From the moment a transfer may start, memory access included, to when its rank takes what
  /// arrives for the same step, where steps are taken in order (Schedule::separate_flows).
  Time receive_latency;
  /// Which ranks' operations are reported to `on_op`; none by default.
  std::function<bool(std::int32_t rank)> traced;
  std::function<void(std::int32_t rank, std::int32_t op, const OpTiming&)> on_op;
  /// For messages about a run that is stuck: the name of an operation of a rank.
  std::function<std::string(std::int32_t rank, std::int32_t op)> op_name;
  bool show_progress = false;
  /// How long a computation takes that starts at `begin`; ProgramOp::compute where it is not set.
  std::function<Time(std::int32_t rank, std::int32_t op, const ProgramOp&, Time begin)> duration;
  /// Per rank: with `duration`, ranks of equal numbers compute equally long, whenever they begin;
  /// empty where that cannot be said.
  std::vector<std::uint64_t> steady_speeds;
  std::vector<NetworkChange> changes;  ///< in order of time
  /// In place of the others for TP groups, where it is set.
  ScheduleSource tensor_schedules;
  /// Collectives that were seen before need not be simulated again, within an error.
  std::optional<RecallOptions> recall;
  /// Of an all-to-all on a group of its family: how much each of its ranks receives (of one that
  /// returns: sends), in parts of the even share. Empty: all are even. Called once a run.
  std::function<std::vector<double>(const ProgramOp&, std::int32_t group)> loads;
  /// The traffic class (NetworkEngine::connect_in_class) of a group's operation, `rank` being one
  /// of the group; -1 where it is not set. Transfers from rank to rank count as pipeline groups'.
  std::function<std::int32_t(GroupKind kind, CommType op, std::int32_t rank)> traffic_class;
  /// How much slower computations are beside collectives: see Interference. Where that was measured
  /// by thread blocks: how many channels a rank's collective has (collective_channels.h).
  Interference interference;
  std::function<std::int32_t(std::int32_t rank, const ProgramOp&)> channels;
  ReplayLimits limits;
};

struct ReplayResult {
  Time end;                          ///< of the last rank
  std::vector<Time> rank_end;        ///< of each rank
  std::vector<OpTiming> first_rank;  ///< every operation of rank 0
  std::int64_t transfers = 0;        ///< point-to-point transfers carried out
  /// What it took, about a microsecond of a core each, the same on any machine: 256 a rank, and two
  /// for each moment at which something happened, 30 where the step is folded.
  std::int64_t work = 0;
  /// With a measured interference: the most thread blocks of collectives beside a computation.
  std::int32_t most_blocks = 0;
  // With ReplayOptions::recall.
  Time error;                         ///< by how much any end may be off
  std::int64_t recalled = 0;          ///< of the transfers: of collectives not simulated again
  std::vector<Bytes> recalled_bytes;  ///< what those put on each port; empty without recall
};

/// Runs every rank's program, co-simulated with a network: a rank computes, enters collectives
/// when it gets there, and its transfers start when it has entered and what they forward has
/// arrived; late ranks delay only those that wait for them. `node_of_rank[r]` is where rank r runs.
///
/// ERRORS: Error when ranks of a group disagree about a collective, and when nothing can go on: in
/// a cyclic wait it names ranks, operations and the ranks that are waited for, where links are down
/// for good the transfers that wait for them.
/// Time O((operations of all ranks + transfers) log), memory 5 B an operation and rank plus the
/// collectives under way. Deterministic.
ReplayResult replay(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                    const Topology& topology, NetworkEngine& network,
                    const ScheduleSource& schedules, const ReplayOptions& options);

struct CommFormula;

/// The same without a network: communication takes what formulas say (formula_runs.h), whatever
/// else is under way. Ranks of one program do the same at the same time, so that one of them is
/// replayed; all are where `options.duration` is set. No transfers, and no changes of links.
ReplayResult replay_by_formula(const RankPrograms& work, const CommFormula& formula,
                               const ReplayOptions& options);

}  // namespace lockstep
