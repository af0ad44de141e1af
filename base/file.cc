#include "base/file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_record.h"
#include "base/units.h"

namespace lockstep {
namespace {

Error cannot_read(const std::string& path, int problem) {
  Error error = Error(fmt::format("cannot read the file: {}", std::strerror(problem))).at(path);
  if (problem == ENOENT) {
    return std::move(error).hint("check the path; relative paths start at the working directory");
  }
  return error;
}

Error too_large(const std::string& path, std::int64_t limit) {
  return Error(fmt::format("the file is larger than {}", to_text(Bytes(limit)))).at(path);
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) {
      throw cannot_read(path, errno);
    }
  }
  ~Descriptor() {
    if (fd_ != STDIN_FILENO) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

FileText::FileText(const std::string& path, std::int64_t limit) {
  FileRecord::note_read(path);
  const Descriptor file(path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    throw cannot_read(path, errno);
  }
  if (S_ISDIR(info.st_mode)) {
    throw Error("is a directory, not a file").at(path);
  }
  if (S_ISREG(info.st_mode)) {
    if (info.st_size > limit) {
      throw too_large(path, limit);
    }
    if (info.st_size == 0) {
      return;
    }
    mapped_size_ = static_cast<std::size_t>(info.st_size);
    mapping_ = ::mmap(nullptr, mapped_size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapping_ != MAP_FAILED) {
      view_ = {static_cast<const char*>(mapping_), mapped_size_};
      return;
    }
    mapping_ = nullptr;
  }
  std::array<char, 1 << 16> chunk{};
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw cannot_read(path, errno);
    }
    if (got == 0) {
      break;
    }
    owned_.append(chunk.data(), static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(owned_.size()) > limit) {
      throw too_large(path, limit);
    }
  }
  view_ = owned_;
}

FileText::~FileText() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapped_size_);
  }
}

}  // namespace lockstep
