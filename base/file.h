#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// A file's whole text, mapped read-only into memory (or read, where it cannot be mapped: pipes,
/// "-" for standard input). The view lives as long as the object.
///
/// ERRORS: Error naming the file when it is missing, a directory, unreadable, or larger than
/// `limit`.
class FileText {
 public:
  static constexpr std::int64_t kDefaultLimit = std::int64_t{16} << 30;

  explicit FileText(const std::string& path, std::int64_t limit = kDefaultLimit);
  ~FileText();
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  std::string_view view() const { return view_; }

 private:
  std::string_view view_;
  std::string owned_;
  void* mapping_ = nullptr;
  std::size_t mapped_size_ = 0;
};

}  // namespace lockstep
