#include "trace/trace_columns.h"

#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "trace/trace_op.h"

namespace lockstep {
namespace {

/// -1: there is none.
int find_column(std::span<const std::string> names, std::string_view wanted,
                const std::string& file) {
  int found = -1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != wanted) {
      continue;
    }
    if (found >= 0) {
      throw Error("the column stands twice").at(file).field(wanted);
    }
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace

std::array<int, kTraceColumns.size()> find_trace_columns(std::span<const std::string> names,
                                                         const std::string& file) {
  std::array<int, kTraceColumns.size()> found{};
  std::vector<std::string_view> missing;
  for (std::size_t c = 0; c < kTraceColumns.size(); ++c) {
    found[c] = find_column(names, kTraceColumns[c], file);
    if (found[c] < 0) {
      missing.push_back(kTraceColumns[c]);
    }
  }
  if (!missing.empty()) {
    throw Error(fmt::format("no column {}", join(missing, ", ")))
        .at(file)
        .expected(join(kTraceColumns, ", "));
  }
  return found;
}

std::array<int, kTraceRankColumns.size()> find_trace_rank_columns(
    std::span<const std::string> names, const std::string& file) {
  std::array<int, kTraceRankColumns.size()> found{};
  for (std::size_t c = 0; c < found.size(); ++c) {
    found[c] = find_column(names, kTraceRankColumns[c], file);
  }
  return found;
}

std::array<int, kTraceTimeColumns.size()> find_trace_time_columns(
    std::span<const std::string> names, const std::string& file) {
  std::array<int, kTraceTimeColumns.size()> found{};
  for (std::size_t c = 0; c < found.size(); ++c) {
    found[c] = find_column(names, kTraceTimeColumns[c], file);
  }
  return found;
}

Error unknown_optype(std::string_view name) {
  const std::string_view near = closest(name, trace_op_names());
  return Error(fmt::format("unknown optype '{}'", printable(name)))
      .field("optype")
      .expected(join(trace_op_names(), ", "))
      .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
}

void report_repairs(const TraceRepairs& repairs, const std::string& file, Warnings* warnings) {
  const auto warn = [&](std::int64_t count, const char* what) {
    if (count > 0 && warnings != nullptr) {
      warnings->add(fmt::format("{}: {} {}", file, count, what));
    }
  };
  warn(repairs.narrowed, "times of 64 bits rounded to 32");
  warn(repairs.floats, "whole numbers read from floating-point ones");
  warn(repairs.absent, "missing values of mc, mb_id and gmc taken as -1 (not applicable)");
}

}  // namespace lockstep
