#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/whatif/dependency_graph.h"
#include "analysis/whatif/op_table.h"
#include "analysis/whatif/simulator.h"
#include "base/warnings.h"

namespace lockstep::whatif {

/// What the trace itself says: 32-bit arithmetic throughout.
struct Traced {
  std::vector<float> step_start_s;  ///< earliest start of each step
  std::vector<float> step_s;        ///< B: latest end - earliest start of each step
  /// Of grouped operations, [node * lanes + lane]: end - latest start of the group's members, that
  /// is the duration without waiting for the peers. At most -10 ms: taken as 0. Others: 0.
  std::vector<float> transfer_s;
  std::int64_t transfers_taken_as_0 = 0;  ///< for being -10 ms or less
};
Traced measure(const OpTable& table, const DependencyGraph& graph);

/// start - latest end of the predecessors in the rank (or the step's start): the time in which the
/// host launched nothing. At most -10 ms: taken as 0. Fills `out` for the lanes from `first_lane`
/// on; returns how many were taken as 0.
std::int64_t launch_delays(const OpTable& table, const DependencyGraph& graph, const Traced& traced,
                           std::uint32_t node, std::size_t first_lane, std::span<float> out);

/// The two timelines all figures compare: without launch delays ("nodelay", T), and with the same
/// ideal time for all operations of a kind ("ideal", I). A kind is a type; of passes that may run
/// side by side, and are then as long as both, and of their transfers with peers, it is a type and
/// that of the pass beside it; sums of two stages' copies are apart from those of replicas.
///
/// Source: Wu et al., OSDI '25, section 3.2: the ideal of computation is the mean over all workers,
/// steps and microbatches, that of communication the median of the transfer times.
struct Model {
  std::vector<double> step_start_s;
  StepTimes nodelay, ideal;
  /// Durations of local operations in T, as end - start; of nodes of groups nothing is kept.
  std::vector<double> nodelay_duration_s;  ///< [local_row[node] * lanes + lane]
  std::vector<std::uint32_t> local_row;    ///< one a node
  /// One a node: durations of local, transfers of grouped operations; the same for all of a kind.
  std::vector<double> ideal_s;
  // All lanes of a step have the same ideal timeline.
  std::vector<double> ideal_start_s;  ///< [node * steps + step]
  std::vector<double> ideal_end_s;    ///< [node * steps + step]

  /// Of all lanes. PRECONDITION: the node is in no group.
  const double* nodelay_durations(std::uint32_t node, std::size_t lanes) const {
    return nodelay_duration_s.data() + local_row[node] * lanes;
  }
};

/// Simulates both. `step_start_s`: one a step, seconds.
Model make_model(const OpTable& table, const DependencyGraph& graph, const Simulator& simulator,
                 const Traced& traced, std::vector<double> step_start_s);

/// Whether the type's operations are always members of groups: their ideal is a transfer time.
bool is_grouped(TraceOp type);

}  // namespace lockstep::whatif
