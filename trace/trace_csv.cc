#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "trace/read_trace.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

constexpr std::size_t kChunkRows = 1 << 16;

/// One line's fields; a quoted field loses its quotes. Our columns need no quoting, so that a
/// separator inside quotes is not understood.
void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view field = trim(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
      field = field.substr(1, field.size() - 2);
    }
    fields.push_back(field);
    if (comma == std::string_view::npos) {
      return;
    }
    line.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, TraceRepairs& repairs)
      : rest_(text), file_(file), repairs_(repairs) {
    if (rest_.starts_with("\xEF\xBB\xBF")) {
      rest_.remove_prefix(3);
    }
    std::string_view line;
    if (!next_line(line)) {
      throw Error("the file is empty").at(file).expected("a line that names the columns");
    }
    split_fields(line, fields_);
    const std::vector<std::string> names(fields_.begin(), fields_.end());
    columns_ = find_trace_columns(names, file);
    rank_columns_ = find_trace_rank_columns(names, file);
    time_columns_ = find_trace_time_columns(names, file);
    width_ = names.size();
  }

  void run(const TraceChunk& chunk) {
    Trace rows;
    std::string_view line;
    while (next_line(line)) {
      if (rows.size() == 0) {
        rows.reserve(std::min(kChunkRows, rest_.size() / 22 + 1));
      }
      split_fields(line, fields_);
      if (fields_.size() != width_) {
        throw Error(fmt::format("{} fields", fields_.size()))
            .at(file_, line_)
            .expected(fmt::format("{}, as in the first line", width_));
      }
      add_row(rows, row());
      add_ranks(rows.extra);
      if (rows.size() == kChunkRows) {
        chunk(std::exchange(rows, {}));
      }
    }
    if (rows.size() > 0) {
      chunk(std::move(rows));
    }
  }

 private:
  /// The next line that is not blank.
  bool next_line(std::string_view& line) {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      line = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++line_;
      if (!trim(line).empty()) {
        return true;
      }
    }
    return false;
  }

  std::string_view text(TraceColumn column) const {
    return fields_[static_cast<std::size_t>(columns_[column])];
  }

  [[noreturn]] void wrong(std::string_view text, std::string_view column,
                          const char* expected) const {
    throw Error(text.empty() ? std::string("the value is missing")
                             : fmt::format("'{}' is no such value", printable(text)))
        .at(file_, line_)
        .field(column)
        .expected(expected);
  }

  template <class T>
  T whole(std::string_view t, std::string_view column) const {
    T value = 0;
    const auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (problem != std::errc() || end != t.data() + t.size()) [[unlikely]] {
      return mended<T>(t, column);
    }
    return value;
  }
  /// Of a field that is no whole number as it stands: one with a point ("3.0"), or none.
  template <class T>
  T mended(std::string_view t, std::string_view column) const {
    if (may_be_absent(column) && (t.empty() || t == "nan" || t == "NaN" || t == "null")) {
      ++repairs_.absent;
      return -1;
    }
    double value = 0;
    const auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    const auto whole = problem == std::errc() && end == t.data() + t.size() ? whole_number<T>(value)
                                                                            : std::nullopt;
    if (!whole) {
      wrong(t, column, "a whole number");
    }
    ++repairs_.floats;
    return *whole;
  }
  template <class T>
  T whole(TraceColumn column) const {
    return whole<T>(text(column), kTraceColumns[column]);
  }

  void add_ranks(TraceExtra& extra) const {
    const std::array<std::vector<std::int32_t>*, kTraceRankColumns.size()> to = {
        &extra.tp_rank, &extra.cp_rank, &extra.ep_rank};
    for (std::size_t c = 0; c < to.size(); ++c) {
      if (rank_columns_[c] >= 0) {
        to[c]->push_back(whole<std::int32_t>(fields_[static_cast<std::size_t>(rank_columns_[c])],
                                             kTraceRankColumns[c]));
      }
    }
    const std::array<std::vector<float>*, kTraceTimeColumns.size()> times = {&extra.alone_s,
                                                                             &extra.undisturbed_s};
    for (std::size_t c = 0; c < times.size(); ++c) {
      if (time_columns_[c] >= 0) {
        times[c]->push_back(
            seconds(fields_[static_cast<std::size_t>(time_columns_[c])], kTraceTimeColumns[c]));
      }
    }
  }

  float seconds(TraceColumn column) const { return seconds(text(column), kTraceColumns[column]); }
  float seconds(std::string_view t, std::string_view column) const {
    float value = 0;
    const auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (problem != std::errc() || end != t.data() + t.size() || !std::isfinite(value)) {
      wrong(t, column, "seconds");
    }
    return value;
  }

  TraceRow row() const {
    const auto type = trace_op_named(text(kOptypeColumn));
    if (!type) {
      throw unknown_optype(text(kOptypeColumn)).at(file_, line_);
    }
    return {.dp_rank = whole<std::int32_t>(kDpRankColumn),
            .stage = whole<std::int32_t>(kStageColumn),
            .rank = whole<std::int32_t>(kRankColumn),
            .step = whole<std::int64_t>(kStepColumn),
            .optype = *type,
            .start_s = seconds(kStartColumn),
            .duration_s = seconds(kDurationColumn),
            .seq_id = whole<std::int32_t>(kSeqIdColumn),
            .mc = whole<std::int32_t>(kMcColumn),
            .mb_id = whole<std::int32_t>(kMbIdColumn),
            .gmc = whole<std::int32_t>(kGmcColumn)};
  }

  std::string_view rest_;
  const std::string& file_;
  TraceRepairs& repairs_;
  std::size_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::array<int, kTraceColumns.size()> columns_{};
  std::array<int, kTraceRankColumns.size()> rank_columns_{};
  std::array<int, kTraceTimeColumns.size()> time_columns_{};
  std::size_t width_ = 0;
};

}  // namespace

void read_trace_csv(std::string_view text, const std::string& file, const TraceChunk& chunk,
                    Warnings* warnings) {
  std::size_t before = 0;
  TraceRepairs repairs;
  Reader(text, file, repairs).run([&](Trace&& rows) {
    check_rows(rows, file, before);
    before += rows.size();
    chunk(std::move(rows));
  });
  report_repairs(repairs, file, warnings);
}

}  // namespace lockstep
