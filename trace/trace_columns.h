#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lockstep {

/// The columns of a trace file, in the order of the original tools.
inline constexpr std::array<std::string_view, 11> kTraceColumns = {
    "dp_rank",  "stage",  "rank", "step",  "optype", "start_ts",
    "duration", "seq_id", "mc",   "mb_id", "gmc"};

/// Those of TraceExtra, behind them where there are any.
inline constexpr std::array<std::string_view, 5> kTraceExtraColumns = {"bytes", "group", "tp_rank",
                                                                       "cp_rank", "ep_rank"};

/// Those of kTraceExtraColumns that readers take.
inline constexpr std::array<std::string_view, 3> kTraceRankColumns = {"tp_rank", "cp_rank",
                                                                      "ep_rank"};

enum TraceColumn {
  kDpRankColumn,
  kStageColumn,
  kRankColumn,
  kStepColumn,
  kOptypeColumn,
  kStartColumn,
  kDurationColumn,
  kSeqIdColumn,
  kMcColumn,
  kMbIdColumn,
  kGmcColumn,
};

/// Where each column of kTraceColumns is among `names`. ERRORS: some are missing (all are named),
/// or one stands twice.
std::array<int, kTraceColumns.size()> find_trace_columns(std::span<const std::string> names,
                                                         const std::string& file);

/// Where each column of kTraceRankColumns is; -1 where there is none. ERRORS: one stands twice.
std::array<int, kTraceRankColumns.size()> find_trace_rank_columns(
    std::span<const std::string> names, const std::string& file);

/// The error for an optype that is none of ours; where it stands is for the caller to say.
Error unknown_optype(std::string_view name);

}  // namespace lockstep
