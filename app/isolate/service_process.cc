#include "app/isolate/service_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/own_program.h"

extern char** environ;

namespace lockstep {
namespace {

/// Starts the program with `socket` as its standard input, and with SIGINT and SIGTERM held back
/// until it ignores them. Returns errno's value.
int spawn(pid_t& process, const std::string& program, std::vector<std::string> words, int socket) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  sigset_t held{};
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGINT);
  ::sigaddset(&held, SIGTERM);
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &held);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const int problem =
      posix_spawn(&process, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

}  // namespace

ServiceProcess::ServiceProcess(std::string program, std::vector<std::string> service)
    : program_(program.empty() ? lockstep_to_start().string() : std::move(program)),
      service_(std::move(service)) {
  start();
}

ServiceProcess::~ServiceProcess() { end(); }

void ServiceProcess::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  std::vector<std::string> words{"lockstep", "--service"};
  words.insert(words.end(), service_.begin(), service_.end());
  const int problem = spawn(process_, program_, std::move(words), ends[1]);
  ::close(ends[1]);
  if (problem != 0) {
    ::close(ends[0]);
    process_ = -1;
    throw Error(fmt::format("cannot start {}: {}", program_, std::strerror(problem)),
                ExitCode::kMissingPart);
  }
  const std::scoped_lock lock(socket_changes_);
  socket_ = ends[0];
}

void ServiceProcess::hang_up() {
  const std::scoped_lock lock(socket_changes_);
  ::shutdown(socket_, SHUT_RDWR);
}

void ServiceProcess::kill() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
  }
}

void ServiceProcess::end() {
  hang_up();
  while (process_ > 0 && ::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  const std::scoped_lock lock(socket_changes_);
  ::close(socket_);
  socket_ = -1;
}

void ServiceProcess::restart() {
  end();
  start();
}

}  // namespace lockstep
