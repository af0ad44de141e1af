#include "simulator/network/analytic/efficiency_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

bool measured(const EfficiencyTable& table, std::size_t column) {
  return !table.rows.empty() && std::all_of(table.rows.begin(), table.rows.end(), [&](auto& row) {
    return row.efficiency[column].has_value();
  });
}

double bytes(const EfficiencyRow& row) { return static_cast<double>(row.size.count()); }

/// Relative efficiency in one measured column. Rows are walked from the largest size down, each
/// efficiency raised where needed so that the time, size / efficiency, does not fall with size.
double in_column(const EfficiencyTable& table, std::size_t column, Bytes size) {
  const std::vector<EfficiencyRow>& rows = table.rows;
  const double last = *rows.back().efficiency[column];
  double above = 1;  // of row i + 1
  if (size >= rows.back().size) {
    return above;
  }
  for (std::size_t i = rows.size() - 1; i-- > 0;) {
    const double here =
        std::max(*rows[i].efficiency[column] / last, above * bytes(rows[i]) / bytes(rows[i + 1]));
    if (size >= rows[i].size) {
      const double part = (static_cast<double>(size.count()) - bytes(rows[i])) /
                          (bytes(rows[i + 1]) - bytes(rows[i]));
      return here + (above - here) * part;
    }
    above = here;
  }
  return above;
}

std::size_t simai_column(std::int64_t nodes) {
  if (nodes == 9) {
    return kMultiColumn;
  }
  for (std::size_t c = 0; c < kEfficiencyNodes.size(); ++c) {
    if (kEfficiencyNodes[c] == nodes) {
      return c;
    }
  }
  return 4;  // 16 servers
}

}  // namespace

double relative_efficiency(const EfficiencyTable& table, Bytes size, double nodes) {
  std::optional<std::size_t> below;
  for (std::size_t c = 0; c < kEfficiencyNodes.size(); ++c) {
    if (!measured(table, c)) {
      continue;
    }
    if (nodes <= kEfficiencyNodes[c]) {
      const double high = in_column(table, c, size);
      if (!below || nodes == kEfficiencyNodes[c]) {
        return high;
      }
      const double low = in_column(table, *below, size);
      const double part =
          std::log2(nodes / kEfficiencyNodes[*below]) /
          std::log2(static_cast<double>(kEfficiencyNodes[c]) / kEfficiencyNodes[*below]);
      return low + (high - low) * part;
    }
    below = c;
  }
  return below ? in_column(table, *below, size) : 1;
}

double relative_multi_efficiency(const EfficiencyTable& table, Bytes size) {
  return measured(table, kMultiColumn) ? in_column(table, kMultiColumn, size) : 1;
}

double simai_relative_efficiency(const EfficiencyTable& table, Bytes size, std::int64_t nodes) {
  if (size == Bytes(0) || table.rows.empty()) {
    return 1;
  }
  const std::size_t column = simai_column(nodes);
  const auto cell = [&](std::size_t row) { return table.rows[row].efficiency[column].value_or(1); };
  const double last = cell(table.rows.size() - 1);
  if (size < table.rows.front().size) {
    return cell(0) / last;
  }
  for (std::size_t i = 0; i + 1 < table.rows.size(); ++i) {
    if (size <= table.rows[i + 1].size) {
      const double low = bytes(table.rows[i]);
      const double high = bytes(table.rows[i + 1]);
      return (cell(i) +
              (cell(i + 1) - cell(i)) * (static_cast<double>(size.count()) - low) / (high - low)) /
             last;
    }
  }
  throw Error(fmt::format("a collective of {} is larger than the efficiency table, whose last row "
                          "is {}; SimAI stops here",
                          to_text(size), to_text(table.rows.back().size)))
      .hint("the default flavour takes the last row for anything larger");
}

}  // namespace lockstep
