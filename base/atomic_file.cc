#include "base/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_record.h"
#include "base/output_capture.h"
#include "base/temporary_files.h"

namespace lockstep {
namespace {

bool written_in_place(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  FileRecord::note_written(path_);
  if (path_ == "-") {
    stream_ = standard_output();
    return;
  }
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    throw Error("cannot write: it is a directory").at(path_);
  }
  if (!written_in_place(path_)) {
    temporary_ = fmt::format("{}.{}.tmp", path_, ::getpid());
  }
  const std::string& name = temporary_.empty() ? path_ : temporary_;
  if (!temporary_.empty()) {
    noted_ = note_temporary_file(temporary_.c_str());
  }
  stream_ = std::fopen(name.c_str(), temporary_.empty() ? "wbe" : "wbxe");
  if (stream_ == nullptr && errno == EEXIST) {
    std::remove(temporary_.c_str());  // left by a killed process that had our number
    stream_ = std::fopen(name.c_str(), "wbxe");
  }
  if (stream_ == nullptr) {
    const int problem = errno;
    forget_temporary_file(noted_);
    temporary_.clear();
    fail("cannot write", problem);
  }
}

AtomicFile::~AtomicFile() {
  if (stream_ != nullptr && path_ != "-") {
    std::fclose(stream_);
  }
  if (!temporary_.empty()) {
    std::remove(temporary_.c_str());
    forget_temporary_file(noted_);
  }
}

void AtomicFile::write(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) {
    fail("cannot write", errno);
  }
}

void AtomicFile::commit() {
  errno = 0;
  if (std::fflush(stream_) != 0) {
    fail("cannot write", errno);
  }
  if (path_ == "-") {
    stream_ = nullptr;
    return;
  }
  if (!temporary_.empty() && ::fsync(::fileno(stream_)) != 0 && errno != EINVAL) {
    fail("cannot write", errno);
  }
  const int closed = std::fclose(stream_);
  stream_ = nullptr;
  if (closed != 0) {
    fail("cannot write", errno);
  }
  if (!temporary_.empty()) {
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      fail("cannot replace", errno);
    }
    forget_temporary_file(noted_);
    temporary_.clear();
  }
}

void AtomicFile::fail(const char* what, int problem) const {
  throw Error(fmt::format("{} the file: {}", what, std::strerror(problem)))
      .at(path_ == "-" ? "standard output" : path_);
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) {
    throw Error(fmt::format("cannot make the folder: {}", problem.message())).at(path);
  }
}

}  // namespace lockstep
