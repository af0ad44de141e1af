#include "trace/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

template <class F>
void for_each_column(Trace& trace, F&& f) {
  f(trace.dp_rank);
  f(trace.stage);
  f(trace.rank);
  f(trace.step);
  f(trace.optype);
  f(trace.start_s);
  f(trace.duration_s);
  f(trace.seq_id);
  f(trace.mc);
  f(trace.mb_id);
  f(trace.gmc);
}

bool before(const Trace& t, std::size_t a, std::size_t b) {
  return std::tie(t.step[a], t.rank[a], t.optype[a], t.seq_id[a]) <
         std::tie(t.step[b], t.rank[b], t.optype[b], t.seq_id[b]);
}

/// Whether all lie in the range; quick enough to ask first.
template <class T>
bool all_within(const std::vector<T>& values, T low, T high) {
  bool within = true;
  for (const T value : values) {
    within &= low <= value && value <= high;  // false for what is no number
  }
  return within;
}

void check_whole(std::int64_t value, std::int64_t low, std::int64_t high, const char* field,
                 const std::string& file, std::size_t row) {
  if (value < low || value > high) [[unlikely]] {
    throw Error(fmt::format("row {}: {} is out of range", row + 1, value))
        .at(file)
        .field(field)
        .expected(fmt::format("{} to {}", low, high));
  }
}

}  // namespace

void Trace::reserve(std::size_t rows) {
  for_each_column(*this, [rows](auto& column) { column.reserve(rows); });
}

void Trace::resize(std::size_t rows) {
  for_each_column(*this, [rows](auto& column) { column.resize(rows); });
}

void add_row(Trace& trace, const TraceRow& row) {
  trace.dp_rank.push_back(row.dp_rank);
  trace.stage.push_back(row.stage);
  trace.rank.push_back(row.rank);
  trace.step.push_back(row.step);
  trace.optype.push_back(row.optype);
  trace.start_s.push_back(row.start_s);
  trace.duration_s.push_back(row.duration_s);
  trace.seq_id.push_back(row.seq_id);
  trace.mc.push_back(row.mc);
  trace.mb_id.push_back(row.mb_id);
  trace.gmc.push_back(row.gmc);
}

TraceRow row_at(const Trace& t, std::size_t i) {
  return {t.dp_rank[i],    t.stage[i],  t.rank[i], t.step[i],  t.optype[i], t.start_s[i],
          t.duration_s[i], t.seq_id[i], t.mc[i],   t.mb_id[i], t.gmc[i]};
}

void append_rows(Trace& to, const Trace& from, std::size_t begin, std::size_t end) {
  const auto append = [&](auto& column, const auto& other) {
    column.insert(column.end(), other.begin() + static_cast<std::ptrdiff_t>(begin),
                  other.begin() + static_cast<std::ptrdiff_t>(end));
  };
  append(to.dp_rank, from.dp_rank);
  append(to.stage, from.stage);
  append(to.rank, from.rank);
  append(to.step, from.step);
  append(to.optype, from.optype);
  append(to.start_s, from.start_s);
  append(to.duration_s, from.duration_s);
  append(to.seq_id, from.seq_id);
  append(to.mc, from.mc);
  append(to.mb_id, from.mb_id);
  append(to.gmc, from.gmc);
  const auto append_if_any = [&](auto& column, const auto& other) {
    if (other.size() == from.size()) {  // shorter where a file before had none: of no use
      append(column, other);
    }
  };
  append_if_any(to.extra.bytes, from.extra.bytes);
  append_if_any(to.extra.group, from.extra.group);
  append_if_any(to.extra.tp_rank, from.extra.tp_rank);
  append_if_any(to.extra.cp_rank, from.extra.cp_rank);
  append_if_any(to.extra.ep_rank, from.extra.ep_rank);
  append_if_any(to.extra.alone_s, from.extra.alone_s);
  append_if_any(to.extra.undisturbed_s, from.extra.undisturbed_s);
}

void append_rows(Trace& to, Trace&& from) {
  if (to.size() == 0) {
    to = std::move(from);
  } else {
    append_rows(to, from, 0, from.size());
  }
}

void check_rows(const Trace& trace, const std::string& file, std::size_t first_row) {
  constexpr std::int64_t kMaxStep = std::int64_t{1} << 53;
  constexpr float kMostStart = 1e11F;      // 3,000 years: some dates count from 1970
  constexpr float kMostDuration = 9.2e6F;  // of 2^63 ps
  if (all_within(trace.start_s, -kMostStart, kMostStart) &&
      all_within(trace.duration_s, 0.0F, kMostDuration) &&
      all_within(trace.dp_rank, 0, kMaxTraceRank) && all_within(trace.stage, 0, kMaxTraceRank) &&
      all_within(trace.rank, 0, kMaxTraceRank) &&
      all_within(trace.step, std::int64_t{0}, kMaxStep) &&
      all_within(trace.seq_id, 0, kMaxTraceRank) && all_within(trace.mc, -1, kMaxTraceRank) &&
      all_within(trace.mb_id, -1, kMaxTraceRank) && all_within(trace.gmc, -1, kMaxTraceRank) &&
      all_within(trace.extra.tp_rank, 0, kMaxTraceRank) &&
      all_within(trace.extra.cp_rank, 0, kMaxTraceRank) &&
      all_within(trace.extra.ep_rank, 0, kMaxTraceRank) &&
      all_within(trace.extra.alone_s, -1.0F, kMostDuration) &&
      all_within(trace.extra.undisturbed_s, -1.0F, kMostDuration)) {
    return;
  }
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (!std::isfinite(trace.start_s[i]) || !std::isfinite(trace.duration_s[i])) {
      throw Error(
          fmt::format("row {}: {} is no finite number", first_row + i + 1,
                      std::isfinite(trace.start_s[i]) ? trace.duration_s[i] : trace.start_s[i]))
          .at(file)
          .field(std::isfinite(trace.start_s[i]) ? "duration" : "start_ts")
          .expected("seconds");
    }
    if (std::abs(trace.start_s[i]) > kMostStart || trace.duration_s[i] > kMostDuration) {
      const bool start = std::abs(trace.start_s[i]) > kMostStart;
      throw Error(fmt::format("row {}: {:g} s are too long", first_row + i + 1,
                              start ? trace.start_s[i] : trace.duration_s[i]))
          .at(file)
          .field(start ? "start_ts" : "duration")
          .expected(start ? "seconds, at most 1e11" : "seconds, at most 106 days");
    }
    if (trace.duration_s[i] < 0) {
      throw Error(fmt::format("row {}: {} is negative", first_row + i + 1, trace.duration_s[i]))
          .at(file)
          .field("duration")
          .expected("seconds, 0 or more");
    }
    check_whole(trace.dp_rank[i], 0, kMaxTraceRank, "dp_rank", file, first_row + i);
    check_whole(trace.stage[i], 0, kMaxTraceRank, "stage", file, first_row + i);
    check_whole(trace.rank[i], 0, kMaxTraceRank, "rank", file, first_row + i);
    check_whole(trace.step[i], 0, kMaxStep, "step", file, first_row + i);
    check_whole(trace.seq_id[i], 0, kMaxTraceRank, "seq_id", file, first_row + i);
    check_whole(trace.mc[i], -1, kMaxTraceRank, "mc", file, first_row + i);
    check_whole(trace.mb_id[i], -1, kMaxTraceRank, "mb_id", file, first_row + i);
    check_whole(trace.gmc[i], -1, kMaxTraceRank, "gmc", file, first_row + i);
    const auto check_if_any = [&](const std::vector<std::int32_t>& ranks, const char* field) {
      if (!ranks.empty()) {
        check_whole(ranks[i], 0, kMaxTraceRank, field, file, first_row + i);
      }
    };
    check_if_any(trace.extra.tp_rank, "tp_rank");
    check_if_any(trace.extra.cp_rank, "cp_rank");
    check_if_any(trace.extra.ep_rank, "ep_rank");
    const auto check_times = [&](const std::vector<float>& times, const char* field) {
      if (!times.empty() && !(times[i] >= -1 && times[i] <= kMostDuration)) {
        throw Error(fmt::format("row {}: {} is no such time", first_row + i + 1, times[i]))
            .at(file)
            .field(field)
            .expected("seconds, at most 106 days, or -1");
      }
    };
    check_times(trace.extra.alone_s, "alone");
    check_times(trace.extra.undisturbed_s, "undisturbed");
  }
}

void sort_rows(Trace& trace) {
  bool sorted = true;
  for (std::size_t i = 1; sorted && i < trace.size(); ++i) {
    sorted = !before(trace, i, i - 1);
  }
  if (sorted) {
    return;
  }
  std::vector<std::size_t> order(trace.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return before(trace, a, b); });
  const auto reorder = [&order](auto& column) {
    auto sorted_column = column;
    for (std::size_t i = 0; i < order.size(); ++i) {
      sorted_column[i] = column[order[i]];
    }
    column = std::move(sorted_column);
  };
  for_each_column(trace, reorder);
  // One that only some of a trace's files have is left alone: who needs it will say so.
  const auto reorder_if_any = [&](auto& column) {
    if (column.size() == order.size()) {
      reorder(column);
    }
  };
  reorder_if_any(trace.extra.bytes);
  reorder_if_any(trace.extra.group);
  reorder_if_any(trace.extra.tp_rank);
  reorder_if_any(trace.extra.cp_rank);
  reorder_if_any(trace.extra.ep_rank);
  reorder_if_any(trace.extra.alone_s);
  reorder_if_any(trace.extra.undisturbed_s);
}

}  // namespace lockstep
