#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/schedule.h"
#include "simulator/network/flow/binding_ports.h"
#include "simulator/network/flow/path_finder.h"
#include "topologies/topology.h"

namespace lockstep {

/// Collectives on a fabric, reduced to what decides their times: slots (connections with a number
/// of equal transfers), the constraints that they share, what each waits for, and the places that
/// they leave and reach. It is plain data, so that it can be folded by symmetry (symmetry.h) before
/// it runs (flow_graph_run.h for a collective alone, folded_runs.h for those of a step).
struct FlowGraph {
  struct Slot {
    double bits = 0;          ///< wire bits of a transfer
    Time latency;             ///< from sent to delivered
    Time start_latency;       ///< from the moment a transfer may start to its first bit
    Time forward_latency;     ///< the same of a transfer that waited for another
    Time entry;               ///< nothing starts earlier
    std::int64_t copies = 1;  ///< slots that this one stands for
    std::int32_t count = 0;   ///< transfers
    std::int32_t kind = 0;    ///< slots of different kinds are never alike
    std::int32_t source = -1, destination = -1;  ///< places; -1 where they do not matter
  };
  std::vector<double> capacity;  ///< of constraints, bits per second
  std::vector<Slot> slots;
  std::vector<RateLimit> limits;               ///< per slot; none where no slot has one
  std::vector<std::int32_t> term_begin = {0};  ///< CSR, slots + 1
  std::vector<MaxMin::Term> term;
  std::vector<std::int32_t> wait_begin = {0};  ///< CSR, slots + 1
  std::vector<SlotWait> wait;
  /// What tells constraints of equal capacity apart, one entry a constraint; empty: nothing.
  std::vector<std::uint64_t> constraint_colour;
  /// What is known to tell places apart, one entry a place; none where places do not matter.
  std::vector<std::uint64_t> place_colour;

  std::span<const MaxMin::Term> terms(std::size_t slot) const {
    return std::span(term).subspan(
        static_cast<std::size_t>(term_begin[slot]),
        static_cast<std::size_t>(term_begin[slot + 1] - term_begin[slot]));
  }
  std::span<const SlotWait> waits(std::size_t slot) const {
    return std::span(wait).subspan(
        static_cast<std::size_t>(wait_begin[slot]),
        static_cast<std::size_t>(wait_begin[slot + 1] - wait_begin[slot]));
  }
};

/// Makes flow graphs: add() each collective, then finish(). Ports that cannot bind are left out
/// (BindingPorts). O(slots x hops), 16 B a hop. ERRORS: those of PathFinder.
class FlowGraphBuilder {
 public:
  /// Where a collective runs and what else its slots have in common.
  struct Setting {
    std::vector<NodeId> nodes;         ///< of its places: ranks, then switches
    std::vector<std::int32_t> places;  ///< numbers of its places; empty: they do not matter
    std::vector<Time> entry;           ///< of each rank; empty: all at 0
    Time send_latency;                 ///< where the schedule has none of its own
    Time forward_latency;              ///< more than that for a transfer that waited
    std::int32_t kind = 0;
  };

  FlowGraphBuilder(const Topology& topology, const FlowOptions& flow);

  /// Appends the slots of a schedule, one for each connection in order of their numbers
  /// (Schedule::connections_of_slot()); returns the index of the first.
  /// PRECONDITION: schedule.chunk_sizes is empty, so that transfers of a slot have one size.
  std::int32_t add(const Schedule& schedule, const Setting& setting);
  /// The numbers of a slot that takes this path.
  static FlowGraph::Slot numbers(const Schedule& schedule, const Slot& slot, const Setting& setting,
                                 const FlowOptions& flow, const PathFinder& paths,
                                 const Path& path);
  /// Leaves these ports out (spared_ports.h has which may be), and no others. Before the first
  /// add().
  void spare(std::vector<char> ports) { spared_ = std::move(ports); }
  /// The graph; nothing can be added after it.
  FlowGraph finish();
  /// After finish(): the constraint of a port; -1 where it is none.
  std::int32_t constraint_of(PortId port) const { return constraint_of_[port.index()]; }

 private:
  void add_new(const Schedule& schedule, const Setting& setting, const Slot& slot);
  void add_like(std::size_t slot);

  FlowOptions flow_;
  PathFinder paths_;
  BindingPorts ports_;
  std::vector<char> spared_;
  std::vector<std::int32_t> constraint_of_;
  FlowGraph graph_;
};

}  // namespace lockstep
