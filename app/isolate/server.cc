#include "app/isolate/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/cache/cached_program.h"
#include "app/isolate/memory_limit.h"
#include "app/isolate/message.h"
#include "base/file_fence.h"
#include "base/find_program.h"
#include "base/module_path.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// A child's way to say that it ran out of memory; no exit code of the command contract.
constexpr int kOutOfMemoryCode = 71;

/// One standard stream of a child: a file in memory, emptied between two.
class StreamFile {
 public:
  StreamFile() : descriptor_(::memfd_create("stream", MFD_CLOEXEC)) {}

  int descriptor() const { return descriptor_; }
  void empty() const {
    (void)::ftruncate(descriptor_, 0);
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  std::string text() const {
    std::string all;
    std::array<char, 1 << 16> chunk;
    for (ssize_t got = 0; (got = ::pread(descriptor_, chunk.data(), chunk.size(),
                                         static_cast<off_t>(all.size()))) > 0;) {
      all.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int descriptor_;
};

/// Beside the task's own: the program and the modules of ours whose bytes the cache looks at. These
/// files alone: what else lies in their folders is anybody's.
void confine(const IsolatedTask& task) {
  std::vector<std::string> readable = task.readable;
  readable.push_back(find_program("lockstep-packet").string());
  for (const char* module : {"liblockstep-parquet.so", "liblockstep-gpu.so"}) {
    const std::vector<std::string> places = module_places(module, "");
    readable.insert(readable.end(), places.begin(), places.end());
  }
  fence_files(readable, {task.folder});
}

/// Beyond it write() is an error. The cache, which is ours, may grow to its own bound.
void limit_output(Bytes most) {
  if (most.count() > 0) {
    std::int64_t bytes = most.count();
    try {
      if (const auto cache = cache_settings()) {
        bytes = std::max(bytes, cache->most_bytes);
      }
    } catch (const Error&) {
      // The command says so.
    }
    const rlimit written{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    ::setrlimit(RLIMIT_FSIZE, &written);
  }
}

[[noreturn]] void be_child(const IsolatedTask& task, int socket, const StreamFile& out,
                           const StreamFile& err, pid_t server) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) {
    ::_exit(0);  // it died before we could ask to die with it
  }
  ::close(socket);
  ::dup2(out.descriptor(), STDOUT_FILENO);
  ::dup2(err.descriptor(), STDERR_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  for (const int ended : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    std::signal(ended, SIG_DFL);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  limit_output(task.output_limit);
  limit_own_memory(task.memory_limit);
  if (!task.folder.empty() && ::chdir(task.folder.c_str()) != 0) {
    fmt::print(stderr, "lockstep: {}: cannot enter the folder: {}\n", task.folder,
               std::strerror(errno));
    std::fflush(stderr);
    ::_exit(static_cast<int>(ExitCode::kBadInput));
  }
  if (task.confined) {
    confine(task);
  }
  bool out_of_memory = false;
  const ExitCode code = run_program_cached(task.arguments, &out_of_memory);
  std::fflush(stdout);
  std::fflush(stderr);
  ::_exit(out_of_memory ? kOutOfMemoryCode : static_cast<int>(code));
}

enum class Watched { kEnded, kTimedOut, kOrphaned };

/// Waits for the child, for its time and for our parent's end, whichever is first.
Watched watch(pid_t child, int socket, Clock::time_point begin, Time limit) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  Watched seen = Watched::kEnded;
  for (bool over = false; !over;) {
    int wait_ms = handle < 0 ? 1 : -1;
    if (limit > Time()) {
      const double left =
          limit.seconds() - std::chrono::duration<double>(Clock::now() - begin).count();
      if (left <= 0) {
        seen = Watched::kTimedOut;
        break;
      }
      const int left_ms = static_cast<int>(std::min(left * 1e3 + 1, 1e9));
      wait_ms = wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms);
    }
    std::array<pollfd, 2> events{{{handle, POLLIN, 0}, {socket, POLLRDHUP, 0}}};
    const int polled = ::poll(events.data(), events.size(), wait_ms);
    if (polled > 0 && events[1].revents != 0) {
      seen = Watched::kOrphaned;
      over = true;
    } else if (handle >= 0) {
      over = polled > 0 && events[0].revents != 0;
    } else {
      siginfo_t info{};
      over = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             info.si_pid == child;
    }
  }
  if (handle >= 0) {
    ::close(handle);
  }
  return seen;
}

/// The last line that begins with our name, which is the error; the last line if none does.
std::string last_message(const std::string& err) {
  std::string found, last;
  for (const std::string_view line : split(err, '\n')) {
    if (line.starts_with("lockstep: ")) {
      found = line.substr(10);
    }
    last = line.empty() ? last : std::string(line);
  }
  return printable(found.empty() ? last : found, 400);
}

void conclude(int status, Watched seen, const IsolatedTask& task, IsolatedResult& result) {
  if (seen == Watched::kTimedOut) {
    result.ending = Ending::kTimedOut;
    result.exit_code = 128 + SIGKILL;
    result.reason = fmt::format("not done within {}", to_text(task.time_limit));
    return;
  }
  if (WIFSIGNALED(status)) {
    result.ending = Ending::kCrashed;
    result.exit_code = 128 + WTERMSIG(status);
    result.reason =
        fmt::format("ended by signal {} ({})", WTERMSIG(status), ::sigdescr_np(WTERMSIG(status)));
    return;
  }
  result.exit_code = WEXITSTATUS(status);
  result.reason = result.exit_code == 0 ? "" : last_message(result.err);
  switch (result.exit_code) {
    case 0:
      result.ending = Ending::kDone;
      break;
    case 1:
      result.ending = Ending::kCheckFailed;
      break;
    case 2:
      result.ending = Ending::kBadInput;
      break;
    case 3:
      result.ending = Ending::kMissingPart;
      break;
    case 70:
      result.ending = Ending::kBug;
      break;
    case kOutOfMemoryCode:
      result.ending = Ending::kOutOfMemory;
      result.exit_code = static_cast<int>(ExitCode::kBadInput);
      result.reason = task.memory_limit.count() > 0
                          ? fmt::format("needs more than {} of memory", to_text(task.memory_limit))
                          : "needs more memory than there is";
      break;
    default:
      result.ending = Ending::kCrashed;
      result.reason = fmt::format("left with exit code {}", result.exit_code);
  }
}

double seconds_of(const rusage& used) {
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

IsolatedResult run_task(const IsolatedTask& task, int socket, const StreamFile& out,
                        const StreamFile& err) {
  out.empty();
  err.empty();
  IsolatedResult result;
  const auto begin = Clock::now();
  const pid_t server = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    be_child(task, socket, out, err, server);
  }
  if (child < 0) {
    result.ending = errno == ENOMEM ? Ending::kOutOfMemory : Ending::kCrashed;
    result.exit_code = static_cast<int>(ExitCode::kBadInput);
    result.reason = fmt::format("cannot fork a process: {}", std::strerror(errno));
    return result;
  }
  ::setpgid(child, child);  // whichever of the two is first
  const Watched seen = watch(child, socket, begin, task.time_limit);
  if (seen != Watched::kEnded) {
    ::kill(-child, SIGKILL);
  }
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  ::kill(-child, SIGKILL);  // what it may have left behind
  if (seen == Watched::kOrphaned) {
    ::_exit(0);
  }
  result.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  result.cpu_s = seconds_of(used);
  result.peak_bytes = std::int64_t{1024} * used.ru_maxrss;
  result.out = out.text();
  result.err = err.text();
  conclude(status, seen, task, result);
  return result;
}

}  // namespace

void serve_isolated_tasks(int socket) {
  const StreamFile out, err;
  std::string message;
  while (receive_message(socket, message)) {
    const IsolatedResult result = run_task(task_of_message(message), socket, out, err);
    if (!send_message(socket, to_message(result))) {
      break;
    }
  }
  ::_exit(0);
}

}  // namespace lockstep
