#include "app/step_score/csv_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

CsvTable::CsvTable(std::string_view text, std::string file) : file_(std::move(file)) {
  std::vector<std::string> cells(1);
  std::int64_t line = 1, first_line = 1;
  bool quoted = false, any = false;
  const auto end_row = [&] {
    if (any) {
      rows_.push_back(std::move(cells));
      lines_.push_back(first_line);
    }
    cells.assign(1, {});
    any = false;
    first_line = line;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n' ? 1 : 0;
    if (c == '"') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '"') {
        cells.back() += c;
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == '\n' && !quoted) {
      end_row();
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
      any = true;
    } else if (c != '\r') {
      cells.back() += c;
      any = true;
    }
  }
  if (quoted) {
    throw Error("a quote is left open").at(file_, static_cast<std::size_t>(first_line));
  }
  end_row();
  // "# GPUs" may be a column's name; a line of another length than the last is a comment.
  while (rows_.size() > 1 && rows_.front().front().starts_with('#') &&
         rows_.front().size() != rows_.back().size()) {
    rows_.erase(rows_.begin());
    lines_.erase(lines_.begin());
  }
  if (rows_.empty()) {
    throw Error("the table is empty").at(file_).expected("names of columns in the first line");
  }
  names_ = std::move(rows_.front());
  rows_.erase(rows_.begin());
  lines_.erase(lines_.begin());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].size() != names_.size()) {
      throw Error(fmt::format("a row of {} cells", rows_[row].size()))
          .at(file_, static_cast<std::size_t>(lines_[row]))
          .expected(fmt::format("{}, as in the first line", names_.size()));
    }
  }
}

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(names_, column) != names_.end();
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(names_, column);
  if (found == names_.end()) {
    throw Error(fmt::format("there is no column '{}'", column)).at(file_, 1);
  }
  return rows_[row][static_cast<std::size_t>(found - names_.begin())];
}

std::optional<double> CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string& cell = text(row, column);
  if (cell.empty()) {
    return std::nullopt;
  }
  const std::optional<double> value = to_double(cell);
  if (!value || !std::isfinite(*value)) {
    throw Error(fmt::format("'{}' is not a number", printable(cell)))
        .at(file_, static_cast<std::size_t>(lines_[row]))
        .field(std::string(column));
  }
  return value;
}

std::optional<std::int64_t> CsvTable::whole(std::size_t row, std::string_view column) const {
  const std::optional<double> value = number(row, column);
  if (value && (*value != std::floor(*value) || std::abs(*value) > 9e15)) {
    throw Error(fmt::format("'{}' is not a whole number", printable(text(row, column))))
        .at(file_, static_cast<std::size_t>(lines_[row]))
        .field(std::string(column));
  }
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

}  // namespace lockstep
