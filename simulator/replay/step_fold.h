#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// A whole step folded by symmetry: ranks that run the same program at equivalent places of the
/// fabric form a class, one rank of which is simulated for all; the connections of their
/// collectives are folded with them (symmetry.h has the conditions, which are proved for every
/// step).
struct StepFold {
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::int32_t> representative;  ///< of each class: its first rank

  /// The folded connections; places are classes.
  FlowGraph graph;
  /// How many slots of a kind leave or reach one rank of their class.
  struct Ends {
    std::int32_t leave = 0, reach = 0;
  };
  std::vector<Ends> ends;  ///< per slot

  /// One kind of collective on one class of communicators.
  struct Communicator {
    std::vector<std::int32_t> slots;
    std::vector<std::int32_t> classes;  ///< of its members, ascending
    std::vector<std::int64_t> shares;   ///< of each: transfers that leave or reach one rank
  };
  std::vector<Communicator> communicators;
  /// Per class and operation of its program: the communicator, or -1.
  std::vector<std::vector<std::int32_t>> communicator_of;

  /// For port loads: the paths of all connections before folding, and the slot that each is.
  std::vector<FlowGraphBuilder::Hop> hops;
  std::vector<std::int64_t> hop_begin;
  std::vector<std::int32_t> slot_of;
};

/// Folds a step, or finds that it does not pay (then nothing): fresh ports, a transport, transfers
/// of unequal sizes on a connection, or more classes than a quarter of the connections.
/// `rank_colour` tells ranks apart that a program does not (one that is slower); empty: none.
/// O(connections of all collectives x hops x rounds); 150 B a connection. ERRORS: no route.
std::optional<StepFold> fold_step(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                                  const Topology& topology, const FlowOptions& flow,
                                  const ScheduleSource& schedules, const ReplayOptions& options,
                                  const std::vector<std::uint64_t>& rank_colour = {});

struct FoldedResult {
  ReplayResult replay;
  std::vector<double> carried_bits;  ///< by each slot of the fold, on the wire
};

/// replay() of a folded step on FoldedRuns (folded_runs.h): the same result, at the cost of its
/// classes.
FoldedResult replay_folded(const RankPrograms& work, const StepFold& fold,
                           const ReplayOptions& options);

}  // namespace lockstep
