#include "app/sweep/sweep_table.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

/// A column as it grows; cells that are missing at its end are empty.
struct Growing {
  std::string name;
  std::vector<Json> cells;  // null: empty
};

template <class T>
ColumnTable::Cells<T> cells_as(const std::vector<Json>& cells) {
  ColumnTable::Cells<T> out;
  out.reserve(cells.size());
  for (const Json& cell : cells) {
    if (cell.is_null()) {
      out.push_back(std::nullopt);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out.push_back(cell.is_string() ? cell.get<std::string>() : cell.dump());
    } else {
      out.push_back(cell.get<T>());
    }
  }
  return out;
}

ColumnTable::Column typed(Growing column) {
  bool whole = true, number = true, truth = true;
  for (const Json& cell : column.cells) {
    if (!cell.is_null()) {
      const bool too_large = cell.is_number_unsigned() && cell.get<std::uint64_t>() >> 63 != 0;
      whole = whole && cell.is_number_integer() && !too_large;
      number = number && cell.is_number();
      truth = truth && cell.is_boolean();
    }
  }
  if (whole && !truth) {
    return {std::move(column.name), cells_as<std::int64_t>(column.cells)};
  }
  if (number && !truth) {
    return {std::move(column.name), cells_as<double>(column.cells)};
  }
  if (truth && !number) {
    return {std::move(column.name), cells_as<bool>(column.cells)};
  }
  return {std::move(column.name), cells_as<std::string>(column.cells)};
}

/// A flag's value as a number, where it is one that prints the same: 2.20 is a version, 010 a name.
Json cell_of(const FlagValue& value) {
  if (value.empty()) {
    return nullptr;
  }
  if (value == FlagValue{""}) {
    return true;
  }
  const std::string text = to_text(value);
  if (const auto whole = to_int(text); whole && std::to_string(*whole) == text) {
    return *whole;
  }
  if (const auto number = to_double(text); number && Json(*number).dump() == text) {
    return *number;
  }
  return text;
}

}  // namespace

ColumnTable sweep_table(const Grid& grid, const std::map<std::int64_t, SweepRow>& rows) {
  std::vector<Growing> inputs, outputs;
  std::unordered_map<std::string, std::size_t> output_of;
  Growing points{"point", {}}, endings{"ending", {}}, codes{"exit_code", {}}, reasons{"reason", {}};
  std::size_t count = 0;
  for (const auto& [flag, value] : grid.point(0).inputs) {
    inputs.push_back({flag, {}});
  }
  for (const auto& [number, row] : rows) {
    const GridPoint point = grid.point(number);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].cells.push_back(cell_of(point.inputs[i].second));
    }
    points.cells.emplace_back(number);
    endings.cells.emplace_back(to_text(row.ending));
    codes.cells.emplace_back(row.exit_code);
    reasons.cells.push_back(row.reason.empty() ? Json(nullptr) : Json(row.reason));
    for (const auto& [key, value] : row.outputs) {
      const auto [place, is_new] = output_of.try_emplace(key, outputs.size());
      if (is_new) {
        outputs.push_back({key, {}});
      }
      outputs[place->second].cells.resize(count);
      outputs[place->second].cells.push_back(value);
    }
    ++count;
  }
  ColumnTable table;
  table.columns.push_back(typed(std::move(points)));
  for (Growing& column : inputs) {
    table.columns.push_back(typed(std::move(column)));
  }
  for (Growing* column : {&endings, &codes, &reasons}) {
    table.columns.push_back(typed(std::move(*column)));
  }
  for (Growing& column : outputs) {
    column.cells.resize(count);
    const bool taken = std::ranges::any_of(
        table.columns, [&](const ColumnTable::Column& other) { return other.name == column.name; });
    column.name = taken ? "result." + column.name : column.name;
    table.columns.push_back(typed(std::move(column)));
  }
  return table;
}

Json columns_json(const ColumnTable& table) {
  Json columns = Json::array();
  for (const ColumnTable::Column& column : table.columns) {
    Json cells = Json::array();
    std::visit(
        [&](const auto& of_type) {
          for (const auto& cell : of_type) {
            cells.push_back(cell ? Json(*cell) : Json());
          }
        },
        column.cells);
    columns.push_back({{"name", column.name}, {"cells", std::move(cells)}});
  }
  return columns;
}

}  // namespace lockstep
