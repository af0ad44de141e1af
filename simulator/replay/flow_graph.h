#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/schedule.h"
#include "simulator/network/flow/path_finder.h"
#include "topologies/topology.h"

namespace lockstep {

/// A collective on a fabric with nothing else on it, reduced to what decides its times: slots
/// (connections with a number of equal transfers), the constraints that they share, and what each
/// waits for. It is plain data, so that it can be folded by symmetry (symmetry.h) before it runs
/// (flow_graph_run.h).
struct FlowGraph {
  struct Slot {
    double bits = 0;          ///< wire bits of a transfer
    Time latency;             ///< from sent to delivered
    Time start_latency;       ///< from the moment a transfer may start to its first bit
    Time forward_latency;     ///< the same of a transfer that waited for another
    Time entry;               ///< nothing starts earlier
    std::int32_t count = 0;   ///< transfers
    std::int64_t copies = 1;  ///< slots that this one stands for
  };
  std::vector<double> capacity;  ///< of constraints, bits per second
  std::vector<Slot> slots;
  std::vector<std::int32_t> term_begin = {0};  ///< CSR, slots + 1
  std::vector<MaxMin::Term> term;
  std::vector<std::int32_t> wait_begin = {0};  ///< CSR, slots + 1
  std::vector<SlotWait> wait;

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

struct FlowGraphOptions {
  Time send_latency;        ///< where the schedule has none of its own
  std::vector<Time> entry;  ///< of each rank; empty: all at 0
};

/// The flow graph of a schedule whose place p is on node nodes[p] (ranks, then switches). Ports
/// that cannot bind are left out, as FlowEngine does. Each slot's transfers have one size. O(slots
/// x hops). ERRORS: those of PathFinder. PRECONDITION: schedule.chunk_sizes is empty.
FlowGraph make_flow_graph(const Schedule& schedule, const std::vector<NodeId>& nodes,
                          const Topology& topology, const FlowOptions& flow,
                          const FlowGraphOptions& options);

}  // namespace lockstep
