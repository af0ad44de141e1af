#include "base/atomic_file.h"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_fence.h"
#include "base/file_record.h"
#include "base/kept_inputs.h"
#include "base/output_capture.h"
#include "base/temporary_files.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// What the link says; empty where it is none.
std::string link_text(const std::string& path) {
  std::array<char, PATH_MAX> text;  // no link is longer
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The end of the symbolic links that begin at `path`, there or not. PRECONDITION: no loop.
std::string end_of_links(std::string path) {
  for (std::string next = link_text(path); !next.empty(); next = link_text(path)) {
    // Not std::filesystem::path: ".." after a link is the system's to say.
    path.resize(next.front() == '/' ? 0 : path.rfind('/') + 1);
    path += next;
  }
  return path;
}

/// Of /dev/stdout, /dev/fd/1, links to them: which open file that is; -1: something else.
int open_file_named(std::string path) {
  for (; !path.empty(); path = link_text(path)) {
    for (const std::string_view folder : {"/proc/self/fd/", "/dev/fd/"}) {
      if (path.starts_with(folder)) {
        const auto number = to_int(std::string_view(path).substr(folder.size()));
        return number && *number >= 0 && *number <= INT_MAX ? static_cast<int>(*number) : -1;
      }
    }
  }
  return -1;
}

/// As the file that is replaced, as far as the system lets us.
void take_rights(int file, const struct stat& old) {
  struct stat info {};
  mode_t mode = old.st_mode & 0777;
  if (::fstat(file, &info) == 0 && (info.st_uid != old.st_uid || info.st_gid != old.st_gid) &&
      ::fchown(file, old.st_uid, old.st_gid) != 0 && info.st_gid != old.st_gid &&
      ::fchown(file, static_cast<uid_t>(-1), old.st_gid) != 0) {
    mode = (mode & 0707) | (mode & 07) << 3;  // the rights were not meant for our group
  }
  static_cast<void>(::fchmod(file, mode));
}

/// Whose temporary of the file `name` this is, as open_temporary() names them; 0: it is none.
pid_t writer_of(std::string_view temporary, std::string_view name) {
  constexpr std::string_view kEnding = ".tmp";
  if (!temporary.starts_with(name) || !temporary.ends_with(kEnding) ||
      temporary.size() < name.size() + 1 + kEnding.size() || temporary[name.size()] != '.') {
    return 0;
  }
  temporary.remove_prefix(name.size() + 1);
  temporary.remove_suffix(kEnding.size());
  const std::size_t dash = temporary.find('-');
  if (dash != temporary.npos && !to_int(temporary.substr(dash + 1))) {
    return 0;
  }
  const auto number = to_int(temporary.substr(0, dash));
  return number && *number > 0 && *number <= INT_MAX ? static_cast<pid_t>(*number) : 0;
}

bool is_running(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  FileRecord::note_written(path_);
  refuse_writing_outside(path_);
  if (path_ == "-") {
    stream_ = standard_output();
  } else {
    open();
  }
}

void AtomicFile::open() {
  struct stat info {};
  const bool there = ::stat(path_.c_str(), &info) == 0;
  if (!there && errno != ENOENT) {
    fail("cannot write", errno);  // a loop of links among others
  }
  if (there && S_ISDIR(info.st_mode)) {
    throw Error("cannot write: it is a directory").at(path_);
  }
  refuse_input(path_);
  if (there && !S_ISREG(info.st_mode)) {
    stream_ = std::fopen(path_.c_str(), "wbe");
  } else if (const int number = there ? open_file_named(path_) : -1; number >= 0) {
    const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
    stream_ = copy < 0 ? nullptr : ::fdopen(copy, "wb");
  } else {
    target_ = end_of_links(path_);
    open_temporary();
    if (stream_ != nullptr && there) {
      take_rights(::fileno(stream_), info);
    }
  }
  if (stream_ == nullptr) {
    const int problem = errno;
    forget_temporary_file(noted_);
    temporary_.clear();
    fail("cannot write", problem);
  }
}

void AtomicFile::open_temporary() {
  const std::size_t name = target_.rfind('/') + 1;  // 0: no folder
  // A name that is taken is of a process with our number: one that was killed, or one on another
  // machine or in another container, which is writing it now.
  constexpr int kMostTaken = 100;
  for (int taken = 0; taken < kMostTaken; ++taken) {
    const std::string end = taken == 0 ? fmt::format(".{}.tmp", ::getpid())
                                       : fmt::format(".{}-{}.tmp", ::getpid(), taken);
    const std::size_t room = NAME_MAX - end.size();
    temporary_ = (target_.size() - name > room && target_.size() - name <= NAME_MAX
                      ? target_.substr(0, name + room)
                      : target_) +
                 end;
    noted_ = note_temporary_file(temporary_.c_str());
    stream_ = std::fopen(temporary_.c_str(), "wbxe");
    if (stream_ != nullptr || errno != EEXIST) {
      return;
    }
    forget_temporary_file(noted_);
  }
  noted_ = -1;
  errno = EEXIST;
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

void AtomicFile::flush() {
  errno = 0;
  if (std::fflush(stream_) != 0) {
    fail("cannot write", errno);
  }
  if (!temporary_.empty() && ::fsync(::fileno(stream_)) != 0 && errno != EINVAL) {
    fail("cannot write", errno);
  }
}

void AtomicFile::commit() {
  flush();
  if (path_ == "-") {
    stream_ = nullptr;
    return;
  }
  struct stat info {};
  const bool known = ::fstat(::fileno(stream_), &info) == 0;
  const int closed = std::fclose(stream_);
  stream_ = nullptr;
  if (closed != 0) {
    fail("cannot write", errno);
  }
  if (!temporary_.empty()) {
    refuse_input(path_);  // it may have been read since
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
      fail("cannot replace", errno);
    }
    if (known) {
      note_own_output(info);
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

void remove_abandoned(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> abandoned;
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    const std::string own = at->path().filename().string();
    for (const std::string& name : names) {
      const pid_t writer = writer_of(own, name);
      if (writer != 0 && (writer == ::getpid() || !is_running(writer))) {
        abandoned.push_back(at->path());
        break;
      }
    }
  }
  for (const std::filesystem::path& each : abandoned) {
    ::unlink(each.c_str());
  }
}

void make_folder(const std::string& path) {
  if (path == "-") {
    throw Error("standard output takes one file, and this is a folder of several")
        .at(path)
        .expected("the name of a folder");
  }
  refuse_writing_outside(path);
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) {
    throw Error(fmt::format("cannot make the folder: {}", problem.message())).at(path);
  }
}

}  // namespace lockstep
