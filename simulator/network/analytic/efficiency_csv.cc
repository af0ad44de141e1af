#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "simulator/network/analytic/efficiency_table.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxRows = 10'000;
constexpr double kMinEfficiency = 1e-9, kMaxEfficiency = 10;

std::string column_name(std::size_t column) {
  return column == kMultiColumn ? "Multi 16"
                                : fmt::format("efficiency on {} nodes", kEfficiencyNodes[column]);
}

EfficiencyRow parse_row(std::string_view line, const std::string& file, std::size_t number) {
  const std::vector<std::string_view> fields = split(line, ',');
  EfficiencyRow row;
  const std::optional<std::int64_t> size = to_int(trim(fields[0]));
  if (!size || *size <= 0) {
    throw Error(fmt::format("'{}' is no message size", printable(fields[0])))
        .at(file, number)
        .field("size")
        .expected("a whole number of bytes above 0");
  }
  row.size = Bytes(*size);
  for (std::size_t c = 0; c < kEfficiencyColumns && c + 1 < fields.size(); ++c) {
    const std::string_view text = trim(fields[c + 1]);
    if (text.empty()) {
      continue;
    }
    row.efficiency[c] = to_double(text);
    if (!row.efficiency[c] || *row.efficiency[c] < kMinEfficiency ||
        *row.efficiency[c] > kMaxEfficiency) {
      throw Error(fmt::format("'{}' is no efficiency", printable(text)))
          .at(file, number)
          .field(column_name(c))
          .expected("a number from 1e-9 to 10 (1 is the full bandwidth), or nothing");
    }
  }
  return row;
}

}  // namespace

EfficiencyTable parse_efficiency_csv(std::string_view text, const std::string& file) {
  EfficiencyTable table;
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) {
      continue;
    }
    EfficiencyRow row = parse_row(lines[i], file, i + 1);
    if (!table.rows.empty() && row.size <= table.rows.back().size) {
      throw Error("the sizes do not ascend")
          .at(file, i + 1)
          .field("size")
          .expected(fmt::format("more than {}", table.rows.back().size.count()));
    }
    if (table.rows.size() == kMaxRows) {
      throw Error(fmt::format("more than {} rows", kMaxRows)).at(file, i + 1);
    }
    table.rows.push_back(row);
  }
  if (table.rows.empty()) {
    throw Error("the table has no rows")
        .at(file)
        .expected(
            "a line of titles, then rows of size,efficiency on 1,2,4,8,16,32,64,128 nodes,Multi "
            "16");
  }
  return table;
}

EfficiencyTables read_efficiency_dir(const std::string& dir) {
  constexpr std::int64_t kLimit = std::int64_t{16} << 20;
  const auto read = [&](const char* name) {
    const std::string path = dir + '/' + name;
    return parse_efficiency_csv(FileText(path, Bytes(kLimit)).view(), path);
  };
  return {read("nic_ratio.csv"), read("nvlink_ratio.csv"), read("ata_ratio.csv")};
}

}  // namespace lockstep
