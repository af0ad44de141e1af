#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "trace/trace.h"

namespace lockstep::whatif {

/// An operation as it recurs: the how-manieth (`seq`) of its type on its stage. It stands for one
/// instance in every step and data-parallel rank.
struct OpNode {
  std::int32_t stage = 0;
  TraceOp type = TraceOp::kForwardCompute;
  std::int32_t seq = 0;
  // Of the reference step and dp_rank 0, from which the dependencies are drawn:
  std::int32_t chunk = -1;         ///< mc
  std::int32_t global_chunk = -1;  ///< gmc
  std::int32_t microbatch = -1;
  float start_s = 0, end_s = 0;
};

/// "forward-compute 3 of stage 0".
std::string to_text(const OpNode& node);

/// A trace as a dense table: nodes by lanes, a lane being one (step, dp_rank). Nodes are sorted by
/// stage, type and seq; lane = step index * dp + dp_rank.
///
/// INVARIANT: every node has one instance in every lane.
struct OpTable {
  std::vector<OpNode> nodes;
  std::vector<std::int64_t> steps;  ///< ascending
  std::int32_t dp = 0;              ///< data-parallel ranks
  std::int32_t stages = 0;
  std::vector<std::int32_t> ranks;  ///< global rank of (stage, dp_rank), at stage * dp + dp_rank
  std::vector<float> start_s;       ///< [node * lanes() + lane]
  std::vector<float> duration_s;    ///< [node * lanes() + lane]
  /// Of every row of the trace it was made from, where it went: node * lanes() + lane.
  std::vector<std::uint32_t> place_of_row;

  std::size_t lanes() const { return steps.size() * static_cast<std::size_t>(dp); }
  std::size_t size() const { return nodes.size() * lanes(); }
  std::span<const float> start(std::size_t node) const {
    return {start_s.data() + node * lanes(), lanes()};
  }
  std::span<const float> duration(std::size_t node) const {
    return {duration_s.data() + node * lanes(), lanes()};
  }
  std::int32_t rank(std::int32_t stage, std::int32_t dp_rank) const {
    return ranks[static_cast<std::size_t>(stage * dp + dp_rank)];
  }
  /// The node, or npos. O(log nodes).
  std::size_t find(std::int32_t stage, TraceOp type, std::int32_t seq) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

struct OpTableOptions {
  /// Steps that lack an operation are left out, with a warning, instead of being an error.
  bool drop_incomplete_steps = false;
};

/// Makes the table. The nodes are the operations of dp_rank 0 in the smallest step.
///
/// PRECONDITION: check_rows and sort_rows have passed over `trace`. O(rows).
/// ERRORS (naming step, rank and operation; `file` is for messages): no rows, a dp_rank or stage
/// that is absent, a worker with two ranks or a rank with two workers, an operation that is missing
/// somewhere, that stands twice, or that the reference step lacks. Rows that repeat another one in
/// every column are left out, with a warning that counts them.
OpTable make_op_table(const Trace& trace, const std::string& file, const OpTableOptions& options,
                      Warnings* warnings);

/// What helps against a step that lacks operations.
inline constexpr std::string_view kIncompleteStepHint =
    "every step must have the operations of the first; --drop-incomplete-steps leaves the others "
    "out";

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
