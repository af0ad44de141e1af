#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep {

/// An output file that appears whole or not at all: written beside its place under a temporary
/// name, flushed to disk and renamed by commit(). Without commit() (an exception, say) the
/// temporary is removed and an older file stays as it was. Path "-" is standard output, written as
/// it comes. Missing folders are not made.
///
/// A path that exists and is no regular file (a pipe, /dev/null, /dev/full) is written in place.
/// ERRORS: Error naming the file and the system's reason (disk full, no permission …).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  void commit();
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what, int problem) const;

  std::string path_;
  std::string temporary_;  // empty when written in place
  int noted_ = -1;         // its entry among the temporary files
  std::FILE* stream_ = nullptr;
};

/// The whole file at once.
void write_file(const std::string& path, std::string_view text);

/// Makes the folder and those above it, unless they are there. ERRORS: it cannot be made.
void make_folder(const std::string& path);

}  // namespace lockstep
