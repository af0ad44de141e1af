#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/warnings.h"
#include "trace/trace.h"

namespace lockstep {

/// The columns of a trace file, in the order of the original tools.
inline constexpr std::array<std::string_view, 11> kTraceColumns = {
    "dp_rank",  "stage",  "rank", "step",  "optype", "start_ts",
    "duration", "seq_id", "mc",   "mb_id", "gmc"};

/// Those of TraceExtra, behind them where there are any.
inline constexpr std::array<std::string_view, 7> kTraceExtraColumns = {
    "bytes", "group", "tp_rank", "cp_rank", "ep_rank", "alone", "undisturbed"};
/// Those of kTraceExtraColumns that are times.
inline constexpr std::array<std::string_view, 2> kTraceTimeColumns = {kTraceExtraColumns[5],
                                                                      kTraceExtraColumns[6]};

/// Those of a trace's rows: none without bytes, of the times those before the first one of which
/// nothing is known.
inline std::span<const std::string_view> trace_extra_columns(const TraceExtra& extra) {
  const std::size_t all = kTraceExtraColumns.size();
  const std::size_t count = extra.bytes.empty()           ? 0
                            : extra.alone_s.empty()       ? all - 2
                            : extra.undisturbed_s.empty() ? all - 1
                                                          : all;
  return std::span(kTraceExtraColumns).first(count);
}

/// Those of kTraceExtraColumns that say where a worker is.
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

/// Where each column of kTraceTimeColumns is; -1 where there is none. ERRORS: one stands twice.
std::array<int, kTraceTimeColumns.size()> find_trace_time_columns(
    std::span<const std::string> names, const std::string& file);

/// The error for an optype that is none of ours; where it stands is for the caller to say.
Error unknown_optype(std::string_view name);

/// Whether a row without a value in the column (null, NaN, an empty field) says "not applicable",
/// -1. Elsewhere it is an error.
constexpr bool may_be_absent(std::string_view column) {
  return column == kTraceColumns[kMcColumn] || column == kTraceColumns[kMbIdColumn] ||
         column == kTraceColumns[kGmcColumn];
}

/// The number if it is a whole one that T holds.
template <class T>
std::optional<T> whole_number(double value) {
  // 2^63 is the first beyond those of 64 bits.
  constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  return value >= -kEnd && value < kEnd && std::trunc(value) == value
             ? std::optional(static_cast<T>(value))
             : std::nullopt;
}

/// What a reader mended, and how often.
struct TraceRepairs {
  std::int64_t narrowed = 0;  ///< times of 64 bits that are others in 32
  std::int64_t floats = 0;    ///< whole numbers that stood as floating-point ones: "3.0"
  std::int64_t absent = 0;    ///< values that may_be_absent, taken as -1
};
/// Warns of each kind with its count.
void report_repairs(const TraceRepairs& repairs, const std::string& file, Warnings* warnings);

}  // namespace lockstep
