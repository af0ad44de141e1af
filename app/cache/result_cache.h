#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/cache/stored_result.h"

struct sqlite3;

namespace lockstep {

/// One entry as `lockstep cache ls` shows it.
struct CacheEntry {
  std::int64_t id = 0;
  std::string command;  ///< the command line
  std::int64_t bytes = 0;
  std::int64_t created = 0, used = 0;  ///< seconds since 1970
};

struct CacheCheck {
  std::int64_t entries = 0, damaged = 0;  ///< damaged ones have been removed
  std::string store;                      ///< SQLite's own verdict; "ok"
  bool broken = false;                    ///< it was none, and has been moved aside
};

/// Who may use a store at once. SQLite's write-ahead log is for processes of one machine: they
/// share memory. Where several may come, over a network's file system, there is a rollback journal
/// instead, under the locks of the file system: writers and readers wait for each other.
enum class CacheSharing { kOneMachine, kMachines };
/// By the kind of file system that a folder lies on.
CacheSharing cache_sharing(const std::string& folder);

/// Results of commands in one SQLite file: docs/formats/cache.md. Any number of processes may read
/// and write it at once. Every entry carries a check sum; one that does not fit
/// is removed and counts as absent, and a file that is no store at all is moved aside. The file
/// stays below a size, whoever else writes to it: the longest unused go first. A file that is
/// larger already, since the size was another one, takes no more, and shrink() makes it smaller.
/// Beside it lies a log as long as processes use the store.
///
/// A cache only saves time: find() and store() give up quietly where another process holds the file
/// for seconds or the disk is full. ERRORS: the constructor, where there can be no file, and what
/// is asked for by name (list, used_bytes, shrink).
class ResultCache {
 public:
  ResultCache(const std::string& folder, std::int64_t most_bytes);
  ResultCache(const std::string& folder, std::int64_t most_bytes, CacheSharing sharing);
  ~ResultCache();
  ResultCache(const ResultCache&) = delete;
  ResultCache& operator=(const ResultCache&) = delete;

  /// A result with this key all of whose inputs are unchanged; of its files, those that are not
  /// there any more as they were written.
  std::optional<StoredResult> find(const std::string& key);
  void store(const std::string& key, const std::string& command,
             const std::vector<CacheInput>& inputs, const StoredResult& result);

  std::vector<CacheEntry> list();  ///< the last used first
  std::int64_t used_bytes();       ///< of the file, without what is free in it
  /// Until the file is no larger, or has no entries. How many entries had to go.
  std::int64_t shrink(std::int64_t most_bytes);
  CacheCheck verify();
  const std::string& path() const { return path_; }
  /// Why the file that was there has been moved aside when this was made; empty: it has not.
  const std::string& problem() const { return problem_; }

 private:
  class Statement;
  class Transaction;
  struct Pages {
    std::int64_t size, count, unused;
  };
  void open();
  void begin_anew();
  void execute(const char* sql);
  std::optional<StoredResult> read(const std::string& key, std::vector<std::int64_t>& damaged);
  std::int64_t remove_damaged(const std::vector<std::int64_t>& ids);
  Pages pages();
  std::int64_t rows();
  bool make_room(std::int64_t most_bytes, std::int64_t for_bytes);

  std::string path_, problem_;
  std::int64_t most_bytes_;
  CacheSharing sharing_;
  sqlite3* store_ = nullptr;
};

}  // namespace lockstep
