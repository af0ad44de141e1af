#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/sweep/row.h"

namespace lockstep {

/// The rows of a sweep as they come, one line of JSON each, appended to a file: what is on it is
/// never lost, and a sweep that was killed goes on after it. docs/formats/sweep-journal.md.
///
/// The first line says whose rows these are; a torn or damaged line is passed over, and its point
/// is computed again. At most one process writes a journal.
class SweepJournal {
 public:
  /// Opens or makes the journal. `identity`: the grid with all it depends on, hashed.
  /// ERRORS: another process has it; it is of another grid or version; the file cannot be used.
  SweepJournal(std::string path, const std::string& identity, std::int64_t points);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  /// The rows that were there, by point. The last of a point counts.
  const std::map<std::int64_t, SweepRow>& rows() const { return rows_; }
  std::int64_t damaged() const { return damaged_; }  ///< lines passed over
  /// Takes a row in and writes it. ERRORS: a full disk.
  void add(const SweepRow& row);

 private:
  void read(const std::string& identity, std::int64_t points);
  void append(std::string line);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  int descriptor_ = -1;
  std::map<std::int64_t, SweepRow> rows_;
  std::int64_t damaged_ = 0;
};

}  // namespace lockstep
