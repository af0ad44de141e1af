#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// An output file that appears whole or not at all: written beside its place under a temporary
/// name, flushed to disk and renamed by commit(). Without commit() (an exception, say) the
/// temporary is removed and an older file stays as it was. Path "-" is standard output, written as
/// it comes. Missing folders are not made.
///
/// A file that is replaced keeps its permissions, and its owner and group where the system lets us
/// (else others' rights are the group's too). Through symbolic links their target is written, there
/// or not; the links stay.
///
/// A path that exists and is no regular file (a pipe, /dev/null, /dev/full) is written in place;
/// /dev/stdout and its like go on from where the open file stands.
/// ERRORS: Error naming the file and the system's reason (disk full, no permission …); the file is
/// an input too (kept_inputs.h).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  /// All but the name is on disk. Of two files that belong together the second one's commit() then
  /// fails only where a rename can.
  void flush();
  void commit();
  const std::string& path() const { return path_; }

 private:
  void open();
  void open_temporary();
  [[noreturn]] void fail(const char* what, int problem) const;

  std::string path_;
  std::string target_;     // what path_ leads to; empty when written in place
  std::string temporary_;  // empty when written in place
  int noted_ = -1;         // its entry among the temporary files
  std::FILE* stream_ = nullptr;
};

/// The whole file at once.
void write_file(const std::string& path, std::string_view text);

/// Removes what killed processes have left of these files of the folder: temporaries of processes
/// that this machine no longer has, or of our own number. PRECONDITION: nobody else writes the
/// files, on another machine or in another container, and we are writing none of them.
void remove_abandoned(const std::string& folder, const std::vector<std::string>& names);

/// Makes the folder and those above it, unless they are there. ERRORS: it cannot be made, or its
/// name is "-", which is standard output in every flag that names an output, or it is outside of
/// where this process may write (file_fence.h).
void make_folder(const std::string& path);

}  // namespace lockstep
