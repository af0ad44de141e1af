#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/flow_graph.h"

namespace lockstep {

struct FlowGraphTimes {
  std::vector<Time> sent;       ///< of each slot: its last transfer has left
  std::vector<Time> delivered;  ///< of each slot: its last transfer has arrived
  std::int64_t transfers = 0;   ///< of all copies of all slots
  std::int64_t simulated = 0;   ///< of those, how many were run one by one
};

/// Runs a flow graph on a FluidNetwork: a transfer starts when its slot's entry has come, what it
/// waits for has been delivered and the one before it has left.
///
/// With `fast_forward`, repetition is skipped, exactly: whenever the whole state (what every slot
/// has sent and received, what every flow has left, when every pending thing will happen) is the
/// same as at an earlier moment but for a shift in time and in the transfers' numbers, the future
/// repeats the past, and as many periods are jumped as leave every slot a transfer to do. States
/// are compared in full, number for number, at each delivery of one slot against a state saved at
/// the 1st, 2nd, 4th, 8th, … of them (Brent: An improved Monte Carlo factorization algorithm, 1980,
/// section 2), so a repetition is found within three times the transient and period. A graph
/// without shared constraints is not even run event by event: run_as_recurrence().
///
/// Complexity: FluidNetwork's per simulated transfer, and at most O(slots) a step of the reference
/// slot for comparisons that mostly end at the first difference. ERRORS: Error when slots wait in a
/// circle, or for the clock's end.
FlowGraphTimes run_flow_graph(const FlowGraph& graph, bool fast_forward);
/// The same for a graph that is not needed afterwards, with less memory.
FlowGraphTimes run_flow_graph(FlowGraph&& graph, bool fast_forward);

}  // namespace lockstep
