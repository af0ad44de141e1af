#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/replay/flow_graph_run.h"

namespace lockstep {

/// Runs a flow graph in which no two slots share a constraint, as the recurrence that it then is.
/// With D the time that the network takes to send a transfer of a slot that is alone (asked of a
/// FluidNetwork, so that it is the same to the picosecond), and over the waits w of the slot:
///
///     may start   u_k = max over w of delivered_w(k - lag_w)                 nothing where k <
///     lag_w sent_k      = max(max(u_k, entry) + start or forward latency, sent_(k-1)) + D
///     delivered_k = sent_k + latency
///
/// a linear system over (max, +): no events, no queues, a few nanoseconds a transfer. Such systems
/// become periodic (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, theorem
/// 3.109): as soon as all times of the last rounds are those of an earlier round but for one shift,
/// compared number for number, all periods that fit are added at once. States are kept at rounds 1,
/// 2, 4, 8, …, for each set of slots that waits connect.
///
/// Nothing where the graph is of another kind: slots that share a constraint or have rate limits,
/// waits for later transfers, lags of more than 64, transfers without bits, times beyond half of
/// the clock. O(slots and waits) a round, 8 B a slot for each transfer that the longest lag goes
/// back.
std::optional<FlowGraphTimes> run_as_recurrence(const FlowGraph& graph);

/// The same for a graph that runs many times, with other entries of its slots each time.
class PreparedRecurrence {
 public:
  /// Nothing where run_as_recurrence() gives nothing for what the graph is.
  static std::optional<PreparedRecurrence> of(FlowGraph graph);

  const FlowGraph& graph() const { return graph_; }
  /// `entry` of each slot stands for FlowGraph::Slot::entry. Of each slot `done` transfers have
  /// been delivered before `now`, and nothing is under way then; empty: none. False where times get
  /// too late.
  bool run(std::span<const Time> entry, std::span<const std::int32_t> done, Time now,
           FlowGraphTimes& times) const;

  /// Where a slot is at some moment, when all that happens then has happened.
  struct SlotState {
    std::int32_t started = 0, sent = 0, delivered = 0;  ///< transfers
    Time begin;                    ///< of the first that has not been sent, if it was started
    std::vector<Time> may_begin;   ///< of the others that were started, or what they wait for
    std::vector<Time> deliveries;  ///< to come of those that were sent
  };
  /// `entry` is Time::max() of slots that have not been entered. Transfers that were done before
  /// are over at the first entry. O(slots and waits) a transfer of a slot until `moment`.
  std::vector<SlotState> at(std::span<const Time> entry, std::span<const std::int32_t> done,
                            Time moment) const;
  /// At which a slot's transfers leave, in FluidNetwork's units.
  std::int64_t rate(std::size_t slot) const { return rate_[slot]; }

 private:
  FlowGraph graph_;
  std::vector<std::vector<std::int32_t>> components_;  ///< slots in the order of their waits
  std::vector<std::int64_t> sending_;                  ///< of each slot's transfers, in ps
  std::vector<std::int64_t> rate_;                     ///< of each slot
};

}  // namespace lockstep
