#include "base/child_process.h"

#include <array>
#include <cerrno>
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
  bool ended = false;
  while (!ended && ::poll(&closed, 1, 1000) > 0) {
    ended = ::recv(socket_, rest.data(), rest.size(), 0) <= 0;
  }
  if (!ended) {
    ::kill(child_, SIGKILL);
  }
  ::close(socket_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::write(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
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
  throw Error(fmt::format("{} has ended unexpectedly", name_), ExitCode::kBug)
      .hint("what it said stands above; 'lockstep doctor' shows whether it fits this program");
}

}  // namespace lockstep
