#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A table of comma-separated values with names in its first line (RFC 4180); lines before
/// it that begin with '#' and have another number of cells are comments.
class CsvTable {
 public:
  /// ERRORS: Error with file and line: no first line, a row of another length, a quote left open.
  CsvTable(std::string_view text, std::string file);

  std::size_t rows() const { return rows_.size(); }
  bool has(std::string_view column) const;
  /// ERRORS: Error if there is no such column.
  const std::string& text(std::size_t row, std::string_view column) const;
  /// An empty cell is nothing; "4096.0" is whole. ERRORS: Error with file, line and column for what
  /// is no number, or no whole one.
  std::optional<double> number(std::size_t row, std::string_view column) const;
  std::optional<std::int64_t> whole(std::size_t row, std::string_view column) const;

 private:
  std::string file_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::int64_t> lines_;
};

}  // namespace lockstep
