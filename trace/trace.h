#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace_op.h"

namespace lockstep {

/// What a trace may say besides, row by row; each is empty or as long as the trace. The original
/// tools have no such columns. Readers take the ranks and the times, and pass the others over.
struct TraceExtra {
  std::vector<std::int64_t> bytes;  ///< communicated, within a pass too; 0: none
  std::vector<std::string> group;   ///< of a communication: family and which of it, "dp[3]"; or ""
  std::vector<std::int32_t> tp_rank, cp_rank, ep_rank;  ///< of the worker, from 0
  /// Of transfers with peers, and of gradients behind the last pass: seconds that the worker would
  /// wait for them if its peers were always where it is; -1: not known, or of another row.
  std::vector<float> alone_s;
  /// Of passes, where collectives slow computations down: seconds that the worker would compute for
  /// it beside nothing; -1: not known, or of another row.
  std::vector<float> undisturbed_s;

  bool operator==(const TraceExtra&) const = default;
};

/// Who did what when in some training steps: one row an operation, kept column by column.
///
/// The columns are those of ByteDance's NDTimeline exports (StragglerAnalysis, OSDI '25). Times are
/// 32-bit floats because the figures derived from them are defined on those. A trace that leaves a
/// reader satisfies check_rows.
struct Trace {
  std::vector<std::int32_t> dp_rank;  ///< data-parallel rank, from 0
  std::vector<std::int32_t> stage;    ///< pipeline stage, from 0
  std::vector<std::int32_t> rank;     ///< global rank of the recorded worker of (dp_rank, stage)
  std::vector<std::int64_t> step;     ///< number of the training step; gaps are allowed
  std::vector<TraceOp> optype;
  std::vector<float> start_s;     ///< seconds since the first operation of the step
  std::vector<float> duration_s;  ///< seconds, >= 0; communication includes waiting for the peers
  std::vector<std::int32_t> seq_id;  ///< the how-manieth of (step, rank, optype), from 0
  std::vector<std::int32_t> mc;      ///< model chunk inside the stage; -1: not applicable
  std::vector<std::int32_t> mb_id;   ///< microbatch; -1: not applicable
  std::vector<std::int32_t> gmc;     ///< chunk of the whole model; -1: not applicable
  TraceExtra extra;                  ///< where the writer knew

  std::size_t size() const { return step.size(); }
  void reserve(std::size_t rows);
  void resize(std::size_t rows);
  bool operator==(const Trace&) const = default;
};

/// One row, for building a trace by hand.
struct TraceRow {
  std::int32_t dp_rank = 0, stage = 0, rank = 0;
  std::int64_t step = 0;
  TraceOp optype = TraceOp::kForwardCompute;
  float start_s = 0, duration_s = 0;
  std::int32_t seq_id = 0, mc = -1, mb_id = -1, gmc = -1;
};
void add_row(Trace& trace, const TraceRow& row);
TraceRow row_at(const Trace& trace, std::size_t row);

/// Adds rows [begin, end) of another trace, or all of it.
void append_rows(Trace& to, const Trace& from, std::size_t begin, std::size_t end);
void append_rows(Trace& to, Trace&& from);

/// ERRORS: the first row (named with `file`, counted from 1) whose times are not finite, whose
/// duration is negative, or whose ranks, step or seq_id are out of range.
/// `first_row`: how many rows of the file came before these.
void check_rows(const Trace& trace, const std::string& file, std::size_t first_row = 0);

/// Rows in the order of the original tools: step, rank, optype, seq_id. Rows that are in order
/// already cost one pass.
void sort_rows(Trace& trace);

/// The largest ranks and stages a trace may name; keeps a corrupt file from asking for the moon.
inline constexpr std::int32_t kMaxTraceRank = 1 << 24;

}  // namespace lockstep
