#include "base/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"

extern char** environ;

namespace lockstep {
namespace {

/// A file without a name, in memory: one standard stream of the other program. Unlike a pipe it
/// never fills and never raises SIGPIPE.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text = {}) : fd_(::memfd_create("stream", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::lseek(fd_, 0, SEEK_SET) != 0) {
      const int problem = errno;
      ::close(fd_);
      throw Error(fmt::format("cannot pass a stream on: {}", std::strerror(problem)));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return fd_; }

  std::string text() const {
    std::string all;
    std::array<char, 1 << 14> chunk{};
    for (ssize_t got = 0;
         (got = ::pread(fd_, chunk.data(), chunk.size(), static_cast<off_t>(all.size()))) > 0;) {
      all.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int fd_;
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::vector<std::string> environment_with(const std::vector<std::string>& ours) {
  std::vector<std::string> all = ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited = *entry;
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : ours) {
      replaced = replaced || own.starts_with(name);
    }
    if (!replaced) {
      all.emplace_back(inherited);
    }
  }
  return all;
}

/// The null-terminated list that C wants; it lives as long as `texts` stays unchanged.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

enum class Watched { kEnded, kOutOfTime, kGivenUp };

/// Waits for its end, for as long as it may take.
Watched watch(pid_t child, const ProcessOptions& options) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSlice = 0.1, kLongest = 1e6;  // seconds of one poll()
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) {
    return Watched::kEnded;  // a kernel without it (before 5.3) means no time limit
  }
  const struct Closed {
    ~Closed() { ::close(handle); }
    int handle;
  } closed{handle};  // give_up() may throw
  const auto begin = Clock::now();
  for (;;) {
    const double left =
        options.seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    if (left <= 0) {
      return Watched::kOutOfTime;
    }
    if (options.give_up && options.give_up()) {
      return Watched::kGivenUp;
    }
    pollfd ended{handle, POLLIN, 0};
    const double slice = std::min(left, options.give_up ? kSlice : kLongest);
    if (::poll(&ended, 1, static_cast<int>(std::ceil(slice * 1000))) > 0) {
      return Watched::kEnded;
    }
  }
}

int wait_for(pid_t child, const ProcessOptions& options, const std::string& name) {
  Watched seen = Watched::kGivenUp;
  try {
    seen = watch(child, options);
  } catch (...) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    throw;
  }
  if (seen != Watched::kEnded) {
    ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (seen != Watched::kEnded) {
    throw OutOfTime(seen == Watched::kGivenUp
                        ? fmt::format("{} was given up", name)
                        : fmt::format("{} did not end within {} s", name, options.seconds));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  LOCKSTEP_CHECK(!command.empty(), "no program to run");
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.folder, ignored)) {  // else the program is blamed
    throw Error("there is no such folder").at(options.folder);
  }
  const MemoryFile in(options.input);
  const MemoryFile out;
  const MemoryFile err;
  FileActions actions;
  posix_spawn_file_actions_adddup2(actions.get(), in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), err.descriptor(), STDERR_FILENO);
  if (options.out_to) {
    posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, options.out_to->c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  posix_spawn_file_actions_addchdir_np(actions.get(), options.folder.c_str());

  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_with(options.environment);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, command.front().c_str(), actions.get(), nullptr,
                                   pointers_to(arguments).data(), pointers_to(environment).data());
  if (problem != 0) {
    throw Error(fmt::format("cannot start {}: {}", command.front(), std::strerror(problem)),
                ExitCode::kMissingPart);
  }
  ProcessResult result;
  result.exit_code = wait_for(child, options, command.front());
  result.out = out.text();
  result.err = err.text();
  return result;
}

}  // namespace lockstep
