#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace lockstep {

/// What the lines of a journal are.
struct JournalKind {
  std::string_view schema;
  std::string_view key;  ///< the member that tells a line from others: a text
  /// Refuses a line that a reader could not use.
  void (*check)(const JsonView& line);
};

/// Reads a journal's text into lines by key. ERRORS: Error with file and line.
std::map<std::string, Json> read_line_journal(std::string_view text, const std::string& file,
                                              const JournalKind& kind, std::string_view problem);

/// Results that a search has come to, in a file of JSON lines, so that one that was ended, at
/// whatever moment, goes on from there. The first line tells what they are of. Safe for several
/// threads.
class LineJournal {
 public:
  /// Opens or begins it; an empty path keeps nothing. A last line that was cut off is passed over.
  /// ERRORS: it is of another problem, or no journal; it cannot be read or written.
  LineJournal(std::string path, const JournalKind& kind, std::string problem);

  std::optional<Json> find(const std::string& key) const;
  /// Appends a line and writes it out at once. ERRORS: it cannot be written.
  void add(const std::string& key, Json line);

 private:
  void append(const std::string& line) const;

  std::string path_;
  const JournalKind& kind_;
  mutable std::mutex mutex_;
  std::map<std::string, Json> known_;
};

}  // namespace lockstep
