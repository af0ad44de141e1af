#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/whatif/lane_scopes.h"
#include "analysis/whatif/op_table.h"
#include "base/warnings.h"
#include "trace/job_meta.h"

namespace lockstep::whatif {

/// Why a point-to-point operation was recorded but never launched.
enum class NoOp : std::uint8_t {
  kNone,
  kUnmatched,  ///< belongs to no compute operation
  kNoPeer,     ///< the first or last chunk of the model has nobody to talk to
};

/// Operations that end together: those of one collective, or the two ends of a transfer.
struct CommGroup {
  std::vector<std::uint32_t> members;  ///< nodes
  Scope scope = Scope::kLane;          ///< the lanes that an instance spans
};

/// What must end before what starts, for one step and worker of each stage; the same for all.
///
/// Source: the dependency model of Wu et al., "Understanding Stragglers in Large Model Training
/// Using What-if Analysis" (OSDI '25), section 4, in the form of its artifact. Passes followed by
/// transfers with tensor-, context- and expert-parallel peers are ours: what waits for a pass waits
/// for those transfers.
struct DependencyGraph {
  std::vector<std::vector<std::uint32_t>> predecessors;  ///< of each node, ascending
  std::vector<CommGroup> groups;
  std::vector<std::int32_t> group_of;  ///< of each node; -1: a local operation
  std::vector<NoOp> no_ops;            ///< of each node
  LaneScopes scopes;
  bool data_parallel = false;      ///< more than one replica (dp * dsp)
  bool reduces_layernorm = false;  ///< among tensor-parallel ranks that are traced
  bool overlap = false;            ///< gradients are reduced during the backward pass
  bool gathers_in_passes = false;  ///< parameters
};

/// Draws the graph from the nodes' reference times.
///
/// `meta`: its dsp_size and what is ours in it; with one dp_rank and dsp_size 1 there is no data
/// parallelism. ERRORS (naming the operations): a stage without the operations that end a step, a
/// number of transfers that fits no schedule, a send without its receive, parameters gathered or
/// gradients scattered without data parallelism, lane_scopes.
DependencyGraph make_dependency_graph(const OpTable& table, const JobMeta& meta,
                                      const std::string& file, Warnings* warnings);

}  // namespace lockstep::whatif
