#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// Which columns of an EfficiencyTable hold measurements on how many servers.
inline constexpr std::array<int, 8> kEfficiencyNodes{1, 2, 4, 8, 16, 32, 64, 128};
/// Column after those: all-to-all among one GPU of each of 16 servers ("Multi 16").
inline constexpr std::size_t kMultiColumn = 8;
inline constexpr std::size_t kEfficiencyColumns = 9;

struct EfficiencyRow {
  Bytes size;
  std::array<std::optional<double>, kEfficiencyColumns> efficiency;  ///< empty: not measured
};

/// Measured efficiency of a collective (bus bandwidth reached over bus bandwidth possible) by
/// message size and number of servers. Rows ascend in size.
///
/// The formulas that use it take bandwidths that large messages reach in practice, so what counts
/// is the efficiency relative to that of the last row: see relative_efficiency.
struct EfficiencyTable {
  std::vector<EfficiencyRow> rows;
};

/// The three tables of the model.
struct EfficiencyTables {
  EfficiencyTable nic;         ///< all-gather, reduce-scatter limited by the NICs
  EfficiencyTable nvlink;      ///< all-gather, reduce-scatter limited by NVLink
  EfficiencyTable all_to_all;  ///< all-to-all
};

/// The tables published with SimAI.
const EfficiencyTables& published_efficiency();

/// The efficiency at `size` on `nodes` servers over that of the largest measured size, in (0, …).
///
/// Between rows linear in size, but never so that a larger message would take less time than a
/// smaller one; below the first row as the first; above the last as the last. Between columns
/// linear in log2(nodes), columns without measurements left out; beyond the last as the last.
/// A table without measurements gives 1. O(rows * columns).
double relative_efficiency(const EfficiencyTable& table, Bytes size, double nodes);
/// The same in column "Multi 16".
double relative_multi_efficiency(const EfficiencyTable& table, Bytes size);

/// SimAI's rule: the same, but without the guard on time; the column is the one of exactly `nodes`
/// servers, 9 means "Multi 16" and every other number the column of 16; an empty cell is 1.
/// ERRORS: size above the last row (SimAI stops there).
double simai_relative_efficiency(const EfficiencyTable& table, Bytes size, std::int64_t nodes);

/// Reads SimAI's layout: a line of titles, then "size,1,2,4,8,16,32,64,128,Multi 16,…" with sizes
/// in bytes, ascending, and efficiencies from 1e-9 to 10, empty where not measured. Columns
/// after the tenth are ignored. At most 10,000 rows.
/// ERRORS: Error with file, line and column name.
EfficiencyTable parse_efficiency_csv(std::string_view text, const std::string& file);

/// Reads nic_ratio.csv, nvlink_ratio.csv and ata_ratio.csv of a folder.
EfficiencyTables read_efficiency_dir(const std::string& dir);

}  // namespace lockstep
