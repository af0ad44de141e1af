#pragma once

#include <mutex>
#include <set>
#include <string>

namespace lockstep {

/// While it lives, every file that the process reads (FileText) or writes (AtomicFile) is noted, on
/// any thread: what a result depends on, and what it consists of. At most one at a time.
class FileRecord {
 public:
  struct Files {
    std::set<std::string> read, written;  ///< paths as given; "-" for a standard stream
  };

  FileRecord();
  ~FileRecord();
  FileRecord(const FileRecord&) = delete;
  FileRecord& operator=(const FileRecord&) = delete;

  Files files() const;

  /// For the classes that open files.
  static void note_read(const std::string& path);
  static void note_written(const std::string& path);

 private:
  mutable std::mutex mutex_;
  Files files_;
};

}  // namespace lockstep
