#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/program_facts.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/ways.h"
#include "topologies/topology.h"

namespace lockstep {

/// What of a step is laid out, and on what; all of it must outlive who keeps this.
struct StepPlace {
  const RankPrograms& work;
  const std::vector<NodeId>& node_of_rank;
  const Topology& topology;
  const FlowOptions& flow;
  const ScheduleSource& schedules;
  const ReplayOptions& options;
  std::shared_ptr<const ProgramFacts> facts;  ///< of the work
  /// Held while the schedules are asked: phases may be laid out beside each other.
  std::shared_ptr<std::mutex> asking = std::make_shared<std::mutex>();
};

/// The connections of a step's collectives and pairs, up to some phase, as they lie on a network:
/// all that folding needs but for how fast ranks compute. It refers to nothing, so simulations of a
/// step that differ in that alone can share it (shared_step.h).
struct StepLayout {
  /// A collective or a pair.
  struct Unit {
    std::int32_t first_slot = -1, slots = 0;  ///< of the graph; -1 where nobody sends
    std::int32_t sender = -1, receiver = -1;  ///< of a pair: ranks
  };
  static constexpr std::int32_t kAlone = -1;  ///< nobody to communicate with
  static constexpr std::int32_t kLater = -2;  ///< not before the next phase

  std::vector<Unit> units;
  /// Per rank and kind of its program: the unit, kAlone or kLater.
  std::vector<std::vector<std::int32_t>> unit_of;
  std::shared_ptr<const Ways> ways;  ///< of the slots of the graph
  /// Places are ranks; colours say which program each runs, and of links when and how they change.
  FlowGraph graph;
  std::vector<std::int32_t> constraint_of;  ///< of each port; -1 where it is none
};

/// Nothing where a step cannot be folded: messages that meet by packets, a transport, transfers of
/// unequal sizes on a connection. O(connections of all collectives up to `last_phase` x hops); 150
/// B a connection. ERRORS: no route.
std::shared_ptr<const StepLayout> lay_out(const StepPlace& place, std::int32_t last_phase);

/// Whether the step's messages meet by packets (NetworkEngine::meet_by_packets()): with fresh
/// ports, where these decide the way of any transfer, in SimAI's rings with relays, and where that
/// cannot be told, as transfers of a connection are of unequal sizes. As lay_out().
bool meet_by_packets(const StepPlace& place);

}  // namespace lockstep
