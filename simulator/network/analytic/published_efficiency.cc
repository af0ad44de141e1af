// Measured efficiency tables published with SimAI (github.com/aliyun/SimAI, Apache-2.0, files
// inputs/ratio/{nic,nvlink,ata}_ratio.csv): facts of measurement, kept as constants of the model.
// Rows are 16 MiB, 32 MiB, … 16 GiB; columns 1, 2, 4, … 128 servers; 0 is "not measured".
#include <array>

#include "simulator/network/analytic/efficiency_table.h"

namespace lockstep {
namespace {

constexpr std::size_t kRows = 11;
constexpr std::int64_t kFirstSize = std::int64_t{16} << 20;

using Cells = std::array<std::array<double, kEfficiencyNodes.size()>, kRows>;

constexpr Cells kNic{{
    {0.45, 0.32, 0.24, 0.13, 0.05, 0.044, 0.021, 0.0087},
    {0.55, 0.47, 0.38, 0.24, 0.11, 0.052, 0.042, 0.021225},
    {0.65, 0.50, 0.53, 0.39, 0.21, 0.106, 0.051, 0.04405},
    {0.69, 0.67, 0.67, 0.54, 0.38, 0.205, 0.107, 0.0533},
    {0.73, 0.85, 0.77, 0.69, 0.57, 0.387, 0.209, 0.1027},
    {0.76, 0.89, 0.85, 0.78, 0.73, 0.562, 0.384, 0.1902},
    {0.77, 0.92, 0.93, 0.90, 0.76, 0.740, 0.563, 0.314575},
    {0.78, 0.94, 0.94, 0.94, 0.92, 0.758, 0.745, 0.553525},
    {0.79, 0.95, 0.95, 0.95, 0.95, 0.923, 0.755, 0.740175},
    {0.80, 0.95, 0.96, 0.96, 0.96, 0.953, 0.914, 0.7648},
    {0.81, 0.96, 0.96, 0.96, 0.96, 0.957, 0.958, 0.919175},
}};

constexpr Cells kNvlink{{
    {0.45, 0.55, 0.34, 0.16, 0.08},
    {0.55, 0.68, 0.60, 0.34, 0.16},
    {0.65, 0.74, 0.71, 0.62, 0.33},
    {0.69, 0.80, 0.74, 0.70, 0.65},
    {0.73, 0.84, 0.79, 0.78, 0.72},
    {0.76, 0.86, 0.86, 0.82, 0.75},
    {0.77, 0.87, 0.87, 0.86, 0.83},
    {0.78, 0.87, 0.87, 0.87, 0.86},
    {0.79, 0.88, 0.88, 0.88, 0.87},
    {0.80, 0.88, 0.88, 0.88, 0.88},
    {0.81, 0.88, 0.88, 0.88, 0.88},
}};

constexpr Cells kAllToAll{{
    {0.44, 0.52, 0.67, 0.64, 0.62},
    {0.51, 0.63, 0.68, 0.67, 0.66},
    {0.60, 0.72, 0.83, 0.82, 0.66},
    {0.65, 0.76, 0.90, 0.85, 0.72},
    {0.70, 0.79, 0.92, 0.87, 0.75},
    {0.71, 0.80, 0.94, 0.89, 0.81},
    {0.74, 0.81, 0.94, 0.92, 0.85},
    {0.76, 0.81, 0.95, 0.93, 0.88},
    {0.77, 0.80, 0.95, 0.94, 0.89},
    {0.78, 0.80, 0.95, 0.94, 0.90},
    {0.78, 0.80, 0.95, 0.94, 0.90},
}};

/// The same in all three files.
constexpr std::array<double, kRows> kMulti16{0.86, 0.92, 0.94, 0.94, 0.94, 0.95,
                                             0.96, 0.96, 0.96, 0.96, 0.96};

EfficiencyTable make_table(const Cells& cells) {
  EfficiencyTable table;
  for (std::size_t r = 0; r < kRows; ++r) {
    EfficiencyRow& row = table.rows.emplace_back();
    row.size = Bytes(kFirstSize << r);
    for (std::size_t c = 0; c < cells[r].size(); ++c) {
      if (cells[r][c] > 0) {
        row.efficiency[c] = cells[r][c];
      }
    }
    row.efficiency[kMultiColumn] = kMulti16[r];
  }
  return table;
}

}  // namespace

const EfficiencyTables& published_efficiency() {
  static const EfficiencyTables tables{make_table(kNic), make_table(kNvlink),
                                       make_table(kAllToAll)};
  return tables;
}

}  // namespace lockstep
