#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/warnings.h"
#include "trace/trace.h"

namespace lockstep::whatif {

/// An operation as it recurs: the how-manieth (`seq`) of its type on its stage. It stands for one
/// instance in every lane.
struct OpNode {
  std::int32_t stage = 0;
  TraceOp type = TraceOp::kForwardCompute;
  std::int32_t seq = 0;
  // Of the reference step and its first worker of the stage, from which the dependencies are drawn:
  std::int32_t chunk = -1;         ///< mc
  std::int32_t global_chunk = -1;  ///< gmc
  std::int32_t microbatch = -1;
  float start_s = 0, end_s = 0;
};

/// Chunk of the whole model; where the trace has none, by its definition.
std::int32_t global_chunk(const OpNode& node, std::int32_t stages);

/// "forward-compute 3 of stage 0".
std::string to_text(const OpNode& node);

/// A trace as a dense table: nodes by lanes, a lane being one step of one worker a stage: a
/// dp_rank, and where tensor- and context-parallel ranks are traced one of those. Nodes are sorted
/// by stage, type and seq; lane = step index * width() + (dp_rank * cp + cp_rank) * tp + tp_rank.
///
/// INVARIANT: every node has one instance in every lane.
struct OpTable {
  std::vector<OpNode> nodes;
  std::vector<std::int64_t> steps;  ///< ascending
  std::int32_t dp = 0;              ///< data-parallel ranks
  std::int32_t stages = 0;
  std::int32_t tp = 1, cp = 1;      ///< traced tensor- and context-parallel ranks of a dp_rank
  std::vector<std::int32_t> ranks;  ///< global rank of a worker: [stage * width() + lane of a step]
  /// Of each lane of a step, which expert-parallel group it is in; empty if none are traced.
  std::vector<std::int32_t> expert_group;
  std::vector<float> start_s;     ///< [node * lanes() + lane]
  std::vector<float> duration_s;  ///< [node * lanes() + lane]
  /// TraceExtra::alone_s; empty where the trace has none.
  std::vector<float> alone_s;  ///< [node * lanes() + lane]
  /// TraceExtra::undisturbed_s; empty where the trace has none.
  std::vector<float> undisturbed_s;  ///< [node * lanes() + lane]
  /// Of every row of the trace it was made from, where it went: node * lanes() + lane.
  std::vector<std::uint32_t> place_of_row;

  /// Whether microbatches enter the pipeline at both ends (DualPipe): chunk 0 of a stage is that
  /// chunk of the whole model, chunk 1 that of the stage as far from the other end.
  bool both_ways = false;
  /// Whether passes of a stage run side by side; of traces with `alone_s` that do not go both ways
  /// by their overlap in the reference step.
  bool side_by_side = false;
  /// Of each pass the one that takes turns with it, so that both are as long as both; kAlone of one
  /// that stands alone. Empty where the trace does not say what each computes.
  std::vector<std::uint32_t> turns_with;
  static constexpr std::uint32_t kAlone = static_cast<std::uint32_t>(-1);

  std::int32_t peers() const { return tp * cp; }  ///< workers of a (stage, dp_rank)
  /// Lanes of a step.
  std::size_t width() const {
    return static_cast<std::size_t>(dp) * static_cast<std::size_t>(peers());
  }
  std::size_t lanes() const { return steps.size() * width(); }
  std::size_t size() const { return nodes.size() * lanes(); }
  std::span<const float> start(std::size_t node) const {
    return {start_s.data() + node * lanes(), lanes()};
  }
  std::span<const float> duration(std::size_t node) const {
    return {duration_s.data() + node * lanes(), lanes()};
  }
  /// How long a worker itself computes for a pass: without what collectives that wait for others
  /// slow it down, or what the pass takes turns with, where the trace says.
  std::span<const float> computes(std::size_t pass) const {
    const std::size_t first = pass * lanes();
    return alone_s.empty() || alone_s[first] < 0
               ? duration(pass)
               : std::span<const float>(alone_s).subspan(first, lanes());
  }
  /// The same beside no collectives, where the trace says.
  std::span<const float> undisturbed(std::size_t pass) const {
    const std::size_t first = pass * lanes();
    return undisturbed_s.empty() || undisturbed_s[first] < 0
               ? computes(pass)
               : std::span<const float>(undisturbed_s).subspan(first, lanes());
  }
  /// `lane`: of a step.
  std::int32_t rank(std::int32_t stage, std::size_t lane) const {
    return ranks[static_cast<std::size_t>(stage) * width() + lane];
  }
  /// Of gradients that are reduced in every microbatch: whether it is what is hidden beside the
  /// pass. The node behind it is what is left behind the pass then.
  bool is_beside_pass(std::uint32_t node) const;
  /// The node, or npos. O(log nodes).
  std::size_t find(std::int32_t stage, TraceOp type, std::int32_t seq) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

/// How many threads a pass over so many operations is worth, as for_each_in_parallel takes it: one,
/// or all cores.
constexpr int threads_for(std::size_t operations) {
  constexpr std::size_t kWorthThreads = 1 << 22;
  return operations < kWorthThreads ? 1 : 0;
}

struct OpTableOptions {
  /// Steps that lack an operation are left out, each with a warning, instead of being an error.
  bool drop_incomplete_steps = false;
  bool keep_places = true;  ///< OpTable::place_of_row; empty otherwise
};

/// Where a worker stands among those of its stage.
struct Place {
  std::int32_t dp_rank = 0, cp_rank = 0, tp_rank = 0;
};
/// `lane`: of a step.
Place place_of(const OpTable& table, std::size_t lane);

/// Makes the table. The nodes are the operations of the first worker of each stage (dp_rank 0, tp
/// and cp rank 0) in the reference step: the smallest, or where incomplete steps are left out the
/// smallest that is complete by itself.
///
/// PRECONDITION: check_rows and sort_rows have passed over `trace`. O(rows).
/// ERRORS (naming step, rank and operation; `file` is for messages): no rows, a worker
/// that is absent, a worker with two ranks or a rank with two workers, an operation that is missing
/// somewhere, that stands twice, or that the reference step lacks. Rows that repeat another one in
/// every column are left out, with a warning that counts them.
OpTable make_op_table(const Trace& trace, const std::string& file, const OpTableOptions& options,
                      Warnings* warnings);

/// What helps against a step that lacks operations.
inline constexpr std::string_view kIncompleteStepHint =
    "every step must have the same operations; --drop-incomplete-steps leaves out those that do "
    "not";

/// That --drop-incomplete-steps would leave no step; `problem`: what the first one lacks.
Error no_complete_step(const std::string& problem, const std::string& file);

struct StepRange {
  std::int64_t first = 0, last = 0;
};
/// Keeps the rows of the steps that lie in one of the ranges, ends included; `met`, one a range,
/// becomes true where a row does.
void keep_steps(Trace& trace, std::span<const StepRange> ranges, std::vector<bool>& met);
/// ERRORS: a range that no row met.
void require_steps(std::span<const StepRange> ranges, const std::vector<bool>& met,
                   const std::string& file);

}  // namespace lockstep::whatif
