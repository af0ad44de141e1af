#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "app/cache/cached_program.h"
#include "app/isolate/services.h"
#include "base/file.h"
#include "base/own_program.h"
#include "base/stop_signal.h"
#include "base/temporary_files.h"

namespace {

/// A standard stream closed by the caller would hand its number to the next file we open, and our
/// messages would land in that file. /dev/null opened the wrong way round holds the place: writing
/// to it fails, as it should.
void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

/// The allocators that Arrow brings crash, where ours throws, once memory is limited and used up:
/// the process ends with 127 and without a word where jemalloc's thread finds no room for its own
/// data. So neither allocator nor thread. Before any thread looks at the environment.
void keep_arrow_off_its_allocators() {
  ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 0);
  ::setenv("JE_ARROW_MALLOC_CONF", "background_thread:false", 0);
}

bool is_limited(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// Arrow brings an allocator of its own, mimalloc, which in the end frees what it may not have got
/// where memory is limited, and crashes a process that has done its work: that one ends before.
void end_before_arrow_does(int status, void* /*nothing*/) {
  if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) {
    std::fflush(nullptr);
    ::_exit(status);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // "lockstep … | head" ends quietly, as any filter does, even if our parent ignored the signal.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that may not grow further (ulimit -f) is an error of write(), as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  hold_standard_streams();
  keep_arrow_off_its_allocators();
  ::on_exit(end_before_arrow_does, nullptr);
  lockstep::this_program_is_lockstep();
  lockstep::explain_lost_files();
  lockstep::leave_no_temporary_files();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  lockstep::serve_if_asked(arguments);
  lockstep::take_signals();
  return static_cast<int>(lockstep::run_program_cached(arguments));
}
