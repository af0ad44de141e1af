#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

namespace lockstep {

/// While it lives, every file that the process reads (FileText) or writes (AtomicFile) is noted, on
/// any thread, and every name that it asked the file system about: what a result depends on, and
/// what it consists of. At most one at a time.
class FileRecord {
 public:
  struct Files {
    std::set<std::string> read, written;       ///< paths as given; "-" for a standard stream
    std::map<std::string, bool> asked;         ///< whether there was something of that name
    std::map<std::string, bool> asked_folder;  ///< whether there was a folder of that name
    std::set<std::string> listed;              ///< folders whose entries were looked through
    bool place = false;  ///< whether the working directory itself was asked for
  };

  FileRecord();
  ~FileRecord();
  FileRecord(const FileRecord&) = delete;
  FileRecord& operator=(const FileRecord&) = delete;

  Files files() const;

  /// For the classes that open files.
  static void note_read(const std::string& path);
  static void note_written(const std::string& path);
  /// For those that go through folders.
  static void note_listed(const std::string& folder);

 private:
  friend bool path_exists(const std::string& path);
  friend bool is_folder(const std::string& path);
  friend std::string absolute_path(const std::string& path);

  mutable std::mutex mutex_;
  Files files_;
};

/// Whether there is a file, folder or anything else of that name; false where that cannot be said.
/// Noted: the answer is part of what a result depends on, above all where it is no.
bool path_exists(const std::string& path);
/// Whether there is a folder of that name; noted as well.
bool is_folder(const std::string& path);
/// The path from the root on. Where it was given from the working directory that is noted.
std::string absolute_path(const std::string& path);

}  // namespace lockstep
