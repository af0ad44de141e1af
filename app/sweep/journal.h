#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/sweep/row.h"

namespace lockstep {

/// What rows depend on, in fingerprints.
struct SweepIdentity {
  std::string grid, program;
  std::map<std::string, std::string> files;  ///< that flags name; those that are there
  /// Whether a point names a file; may be empty where there are none.
  std::function<bool(std::int64_t point, const std::string& file)> uses;
};

/// The rows of a sweep as they come, one line of JSON each, appended to a file: what is on it is
/// never lost, and a sweep that was killed goes on after it. docs/formats/sweep-journal.md.
///
/// The first line says whose rows these are; a torn or damaged line is passed over, and its point
/// is computed again. At most one process writes a journal.
///
/// Rows hold while the files that their points name are the same. Where one has changed (one that
/// was missing is there now, say), points that did not end well are computed again; where one that
/// did names it, the journal is refused.
class SweepJournal {
 public:
  /// Opens or makes the journal. `restart`: throws away what is in it.
  /// ERRORS: another process has it; it is of another grid, program or other files, and which; the
  /// file cannot be used.
  SweepJournal(std::string path, const SweepIdentity& identity, std::int64_t points,
               bool restart = false);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  /// The rows that were there, by point. The last of a point counts.
  const std::map<std::int64_t, SweepRow>& rows() const { return rows_; }
  std::int64_t damaged() const { return damaged_; }  ///< lines passed over
  /// The first of the rows, in the order in which they came, whose point is done; null: none yet.
  const SweepRow* first_done() const;
  /// Takes a row in and writes it. ERRORS: a full disk.
  void add(const SweepRow& row);

 private:
  void read(const SweepIdentity& identity, std::int64_t points);
  void take(const SweepRow& row);
  void drop_changed(const SweepIdentity& identity, const std::vector<Json>& headers,
                    const std::map<std::int64_t, std::size_t>& header_of);
  void append(std::string line);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  int descriptor_ = -1;
  std::map<std::int64_t, SweepRow> rows_;
  std::int64_t damaged_ = 0, first_done_ = -1;
};

}  // namespace lockstep
