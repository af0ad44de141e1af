#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_fence.h"
#include "base/file_record.h"
#include "base/kept_inputs.h"
#include "base/mapped_files.h"
#include "base/missing_path.h"
#include "base/stop_signal.h"
#include "base/temporary_files.h"

namespace lockstep {
namespace {

Error cannot_read(const std::string& path, int problem) {
  Error error = Error(fmt::format("cannot read the file: {}", std::strerror(problem))).at(path);
  if (problem == ENOENT) {
    return std::move(error).hint(hint_of_missing(path));
  }
  return error;
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(path == "-" ? STDIN_FILENO : open(path)) {}
  ~Descriptor() {
    if (fd_ != STDIN_FILENO) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  /// Without waiting for the writer of a FIFO: read_stream() does, and can be told to stop.
  static int open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
      throw cannot_read(path, errno);
    }
    return descriptor;
  }

  int fd_;
};

/// A device has no end, or is a whole disk. /dev/null is 1:3 on every Linux.
bool is_endless(const struct stat& info, int descriptor) {
  return S_ISBLK(info.st_mode) ||
         (S_ISCHR(info.st_mode) && info.st_rdev != makedev(1, 3) && ::isatty(descriptor) == 0);
}

/// Pickles since protocol 2 begin with PROTO and end with STOP; protocols 4 and 5 go on with FRAME,
/// 2 and 3 with what they hold. (A protobuf that begins so has a field's tag there.)
bool is_pickle(const std::string& path, std::string_view text) {
  if (path.ends_with(".pkl") || path.ends_with(".pickle")) {
    return true;
  }
  constexpr std::string_view kThird = "\x95}](c";
  return text.size() > 3 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5 &&
         kThird.find(text[2]) != std::string_view::npos && text.back() == '.';
}

/// What no reader reads, for what it is.
void refuse_other_kinds(const std::string& path, std::string_view text) {
  if (is_pickle(path, text)) {
    throw Error("a Python pickle is a program, and reading it would run it: it is not read")
        .at(path)
        .expected("text, JSON, YAML, CSV or Parquet")
        .hint("AICB writes the same as .csv beside it; else save the data as JSON or CSV");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw Error("the text is in UTF-16")
        .at(path)
        .expected("UTF-8")
        .hint("iconv -f UTF-16 -t UTF-8 FILE > OTHER");
  }
}

void* map(std::size_t size, int protection, int flags, int descriptor) {
  void* const mapping = ::mmap(nullptr, size, protection, flags, descriptor, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

void write_text(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') {
    ++size;
  }
  (void)!::write(STDERR_FILENO, text, size);
}

/// In a signal handler: only calls that are safe there.
extern "C" void on_lost_page(int signal, siginfo_t* info, void* /*context*/) {
  const char* const path = mapped_file_at(info->si_addr);
  if (path == nullptr) {
    ::signal(signal, SIG_DFL);  // the access is tried again, and ends as it would have
    return;
  }
  write_text("lockstep: ");
  write_text(path);
  write_text(": the file became shorter, or its disk failed, while it was read\n");
  remove_temporary_files();
  ::_exit(2);
}

}  // namespace

FileText::FileText(const std::string& path, Bytes usual) : path_(path) {
  FileRecord::note_read(path);
  refuse_reading_outside(path);
  const Bytes limit = input_limit(usual);
  const Descriptor file(path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    throw cannot_read(path, errno);
  }
  if (S_ISDIR(info.st_mode)) {
    throw Error("is a directory, not a file").at(path);
  }
  if (is_endless(info, file.get())) {
    throw Error("is a device, not a file")
        .at(path)
        .expected("a file, a pipe, or - for standard input");
  }
  note_input(path, info);
  if (S_ISREG(info.st_mode)) {
    if (info.st_size > limit.count()) {
      throw input_too_large(path, "the file has", limit);
    }
    mapped_size_ = static_cast<std::size_t>(info.st_size);
    mapping_ = mapped_size_ == 0 ? nullptr : map(mapped_size_, PROT_READ, MAP_PRIVATE, file.get());
    view_ = {static_cast<const char*>(mapping_), mapping_ == nullptr ? 0 : mapped_size_};
  }
  if (mapping_ != nullptr) {
    slot_ = note_mapping(mapping_, mapped_size_, path_.c_str());
  } else {
    // Files of no size too: those of /proc have none.
    read_stream(file.get(), limit);
  }
  try {
    refuse_other_kinds(path, view_);
  } catch (const Error&) {
    forget_mapping(slot_);
    ::munmap(mapping_, mapped_size_);
    throw;
  }
  if (view_.starts_with(kByteOrderMark)) {
    mark_size_ = kByteOrderMark.size();
    view_.remove_prefix(mark_size_);
  }
}

/// Into a mapping that grows where it lies: what is read is in memory once.
void FileText::read_stream(int descriptor, Bytes limit) {
  constexpr std::size_t kFirst = std::size_t{1} << 16;
  std::size_t size = 0;
  const auto fail = [&](const auto& error) {
    if (mapping_ != nullptr) {
      ::munmap(mapping_, mapped_size_);
    }
    mapping_ = nullptr;
    throw error;
  };
  mapped_size_ = kFirst;
  mapping_ = map(mapped_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (mapping_ == nullptr) {
    throw std::bad_alloc();
  }
  for (;;) {
    if (size == mapped_size_) {
      void* const larger = ::mremap(mapping_, mapped_size_, 2 * mapped_size_, MREMAP_MAYMOVE);
      if (larger == MAP_FAILED) {
        ::munmap(mapping_, mapped_size_);
        mapping_ = nullptr;
        throw std::bad_alloc();
      }
      mapping_ = larger;
      mapped_size_ *= 2;
    }
    // Looks up now and then: a signal may come between two looks, and on any thread.
    pollfd readable{descriptor, POLLIN, 0};
    constexpr int kNapMs = 100;
    for (int ready = 0; ready == 0 || (ready < 0 && errno == EINTR);) {
      if (detail::stop_requested) {
        fail(Interrupted());
      }
      ready = ::poll(&readable, 1, kNapMs);
    }
    const ssize_t got =
        ::read(descriptor, static_cast<char*>(mapping_) + size, mapped_size_ - size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got < 0) {
      fail(cannot_read(path_, errno));
    }
    if (got == 0) {
      break;
    }
    size += static_cast<std::size_t>(got);
    if (size > static_cast<std::size_t>(limit.count())) {
      fail(input_too_large(path_, "the input has", limit));
    }
  }
  view_ = {static_cast<const char*>(mapping_), size};
}

FileText::~FileText() {
  forget_mapping(slot_);
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapped_size_);
  }
}

void explain_lost_files() {
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace lockstep
