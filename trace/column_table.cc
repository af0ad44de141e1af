#include "trace/column_table.h"

#include <iterator>
#include <type_traits>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "trace/parquet/module.h"

namespace lockstep {
namespace {

void append_cell(std::string& out, const ColumnTable::Column& column, std::size_t row) {
  std::visit(
      [&](const auto& cells) {
        if (!cells[row].has_value()) {
          return;
        }
        const auto& value = *cells[row];
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          out += csv_field(value);
        } else {
          fmt::format_to(std::back_inserter(out), "{}", value);
        }
      },
      column.cells);
}

std::size_t rows_of(const ColumnTable& table) {
  std::size_t rows = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::size_t length =
        std::visit([](const auto& cells) { return cells.size(); }, table.columns[c].cells);
    LOCKSTEP_CHECK(c == 0 || length == rows, "columns of different lengths");
    rows = length;
  }
  return rows;
}

}  // namespace

std::string to_csv(const ColumnTable& table) {
  std::string out;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    out += (c > 0 ? "," : "") + csv_field(table.columns[c].name);
  }
  out += '\n';
  const std::size_t rows = rows_of(table);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      out += c > 0 ? "," : "";
      append_cell(out, table.columns[c], row);
    }
    out += '\n';
  }
  return out;
}

std::string to_parquet(const ColumnTable& table) { return parquet_module().write_table(table); }

}  // namespace lockstep
