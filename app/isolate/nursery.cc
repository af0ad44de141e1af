#include "app/isolate/nursery.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/isolate/message.h"
#include "app/isolate/server.h"
#include "base/error.h"

namespace lockstep {

Nursery::Nursery() { fork_server(); }

Nursery::~Nursery() { end_server(); }

void Nursery::fork_server() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  server_ = ::fork();
  if (server_ < 0) {
    const int problem = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw Error(fmt::format("cannot fork a process: {}", std::strerror(problem)));
  }
  if (server_ == 0) {
    ::close(ends[0]);
    serve_isolated_tasks(ends[1]);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

void Nursery::end_server() {
  // It ends, and what it runs, when it sees that; another process may hold a copy of our end.
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
  while (::waitpid(server_, nullptr, 0) < 0 && errno == EINTR) {
  }
  busy_ = false;
}

void Nursery::start(const IsolatedTask& task) {
  LOCKSTEP_CHECK(!busy_, "a nursery runs one command at a time");
  if (!send_message(socket_, to_message(task))) {
    end_server();
    fork_server();
    if (!send_message(socket_, to_message(task))) {
      throw Error("the process that runs commands apart ends at once");
    }
  }
  busy_ = true;
}

bool Nursery::ready(std::chrono::microseconds wait) {
  pollfd readable{socket_, POLLIN, 0};
  const timespec limit{wait.count() / 1'000'000, wait.count() % 1'000'000 * 1000};
  return ::ppoll(&readable, 1, &limit, nullptr) > 0;
}

IsolatedResult Nursery::finish() {
  LOCKSTEP_CHECK(busy_, "no command runs in this nursery");
  std::string message;
  if (receive_message(socket_, message)) {
    busy_ = false;
    return result_of_message(message);
  }
  end_server();
  fork_server();
  return {.ending = Ending::kCrashed,
          .exit_code = 128 + SIGKILL,
          .out = {},
          .err = {},
          .reason = "the process that ran it was killed"};
}

void Nursery::cancel() { ::shutdown(socket_, SHUT_RDWR); }

IsolatedResult Nursery::run(const IsolatedTask& task) {
  start(task);
  return finish();
}

}  // namespace lockstep
