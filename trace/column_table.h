#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// A table of results: columns of one type each, all of one length; a cell may be empty.
struct ColumnTable {
  template <class T>
  using Cells = std::vector<std::optional<T>>;
  struct Column {
    std::string name;
    std::variant<Cells<std::int64_t>, Cells<double>, Cells<bool>, Cells<std::string>> cells;
  };

  std::vector<Column> columns;
};

/// As RFC 4180 has it, a line feed after each row; numbers in the shortest form that gives them
/// back.
std::string to_csv(const ColumnTable& table);

/// The bytes of a Parquet file. ERRORS: where Arrow is missing, Error with ExitCode::kMissingPart.
std::string to_parquet(const ColumnTable& table);

}  // namespace lockstep
