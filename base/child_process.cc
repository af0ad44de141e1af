#include "base/child_process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/stop_signal.h"

extern char** environ;

namespace lockstep {
namespace {

/// One end of a socket pair serves both of the child's streams: unlike a pipe, writing to one whose
/// reader has gone need not raise SIGPIPE.
std::array<int, 2> make_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  LOCKSTEP_CHECK(!command.empty(), "no program to run");
  name_ = command.front();
  const auto [ours, theirs] = make_sockets();
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO);
  std::vector<std::string> texts = command;
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    arguments.push_back(text.data());
  }
  arguments.push_back(nullptr);
  const int problem =
      posix_spawnp(&child_, name_.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(theirs);
  if (problem != 0) {
    ::close(ours);
    throw Error(fmt::format("cannot start {}: {}", name_, std::strerror(problem)),
                ExitCode::kMissingPart);
  }
  socket_ = ours;
}

ChildProcess::~ChildProcess() {
  ::shutdown(socket_, SHUT_WR);
  // Its end of the socket closes when it ends.
  pollfd closed{socket_, POLLIN, 0};
  std::array<char, 4096> rest{};
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  bool ended = false;
  while (!ended) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || ::poll(&closed, 1, static_cast<int>(left)) <= 0) {
      break;
    }
    ended = ::recv(socket_, rest.data(), rest.size(), 0) <= 0;
  }
  if (!ended) {
    kill();
  }
  ::close(socket_);
  while (child_ > 0 && ::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::kill() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
  }
}

void ChildProcess::write(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    } else if (errno == EAGAIN) {
      pollfd ready{socket_, POLLIN | POLLOUT, 0};
      if (::poll(&ready, 1, -1) > 0 && (ready.revents & (POLLIN | POLLOUT | POLLHUP)) == POLLIN) {
        kill();
        throw Error(fmt::format("{} talks before it has been asked", name_),
                    ExitCode::kMissingPart);
      }
      throw_if_stopped();
    } else if (errno == EINTR) {
      throw_if_stopped();
    } else {
      gone();
    }
  }
}

void ChildProcess::read(std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    } else if (done < 0 && errno == EINTR) {
      throw_if_stopped();
    } else {
      gone();
    }
  }
}

void ChildProcess::gone() {
  throw_if_stopped();  // Ctrl-C reaches the child too
  ::shutdown(socket_, SHUT_RDWR);
  // One that closed its output but goes on would not be waited for in vain.
  int status = 0;
  pid_t ended = 0;
  for (int tries = 0; ended == 0 && tries < 100; ++tries) {
    ended = ::waitpid(child_, &status, WNOHANG);
    if (ended == 0) {
      ::usleep(10'000);
    }
  }
  std::string how;
  if (ended == child_) {
    child_ = -1;
    // Ctrl-C may reach the child before it reaches us.
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) {
      throw Interrupted();
    }
    how = WIFSIGNALED(status)
              ? fmt::format(", by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
              : fmt::format(", with exit code {}", WEXITSTATUS(status));
  }
  throw Error(fmt::format("{} has ended unexpectedly{}", name_, how), ExitCode::kMissingPart)
      .hint("what it said stands above; 'lockstep doctor' shows whether it fits this program");
}

}  // namespace lockstep
