#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_limit.h"

namespace lockstep {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A file's whole text, mapped read-only into memory (or read, where it cannot be mapped: pipes,
/// "-" for standard input), without the byte order mark of UTF-8 where it begins with one. The view
/// lives as long as the object. The one place where inputs are read whole.
///
/// ERRORS: Error naming the file when it is missing, a folder, a device (but the terminal and
/// /dev/null), unreadable, a Python pickle (which would have to be run to be read), text in UTF-16,
/// outside of where this process may read (file_fence.h), or larger than `usual` or, where the
/// user has said so, than input_limit(). Interrupted where a pipe is waited for and a StopSignal is
/// told to stop.
class FileText {
 public:
  explicit FileText(const std::string& path, Bytes usual = Bytes(INT64_MAX));
  ~FileText();
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  std::string_view view() const { return view_; }
  /// With the byte order mark, where there is one: for readers that do as other programs do.
  std::string_view marked_view() const {
    return {view_.data() - mark_size_, view_.size() + mark_size_};
  }

 private:
  void read_stream(int descriptor, Bytes limit);

  std::string path_;
  std::string_view view_;
  void* mapping_ = nullptr;
  std::size_t mapped_size_ = 0, mark_size_ = 0;
  int slot_ = -1;  // in the list of mapped files
};

/// From now on a mapped file that becomes shorter, or whose disk fails, while it is read ends the
/// process with a message that names it and exit code 2, not with the signal SIGBUS. For main().
void explain_lost_files();

}  // namespace lockstep
