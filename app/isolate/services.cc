#include "app/isolate/services.h"

#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/isolate/server.h"
#include "app/serve/live_process.h"
#include "base/text.h"

namespace lockstep {
namespace {

bool is_socket(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && S_ISSOCK(facts.st_mode);
}

/// Ctrl-C goes to the whole terminal; who started us decides what it means. What came until now
/// was held back (service_process.cc).
void ignore_terminal() {
  sigset_t ignored{};
  ::sigemptyset(&ignored);
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, SIG_IGN);
    ::sigaddset(&ignored, signal);
  }
  ::sigprocmask(SIG_UNBLOCK, &ignored, nullptr);
}

/// The socket under another number, so that standard input is nothing.
int take_socket() {
  const int socket = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::close(nothing);
  return socket;
}

}  // namespace

void serve_if_asked(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[0] != "--service" || !is_socket(STDIN_FILENO)) {
    return;
  }
  ignore_terminal();
  if (arguments[1] == "tasks" && arguments.size() == 2) {
    serve_isolated_tasks(take_socket());
  }
  if (arguments[1] == "live" && arguments.size() == 5) {
    serve_live_model(take_socket(), Bytes(to_int(arguments[2]).value_or(0)), arguments[3],
                     arguments[4]);
  }
}

}  // namespace lockstep
