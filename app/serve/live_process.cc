#include "app/serve/live_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "app/isolate/memory_limit.h"
#include "app/isolate/message.h"
#include "app/serve/live_model.h"
#include "base/error.h"
#include "base/json.h"

namespace lockstep {
namespace {

/// The model of this process and the flags it was loaded with.
struct Held {
  std::vector<std::string> arguments;
  std::optional<LiveModel> model;
};

Json answer(const std::string& message, Held& held) {
  const Json request = parse_json(message, "request");
  const JsonView view(request, "request");
  constexpr std::array<std::string_view, 3> kKeys{"arguments", "sliders", "report"};
  view.allow_keys(kKeys);
  std::vector<std::string> arguments;
  view["arguments"].each([&](const JsonView& word) { arguments.push_back(word.string()); });
  const LiveSliders sliders =
      view.has("sliders") ? sliders_of(view["sliders"].json()) : LiveSliders{};
  std::optional<double> opened;
  if (!held.model || held.arguments != arguments) {
    const auto begin = std::chrono::steady_clock::now();
    held.model.reset();
    held.model.emplace(arguments);
    held.arguments = arguments;
    opened = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  Json reply = view.has("report") && view["report"].boolean()
                   ? held.model->evaluate_with_report(sliders)
                   : held.model->evaluate(sliders);
  if (opened) {
    reply["opened_s"] = *opened;
  }
  return reply;
}

[[noreturn]] void serve_model(int socket, Bytes memory_limit) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  limit_own_memory(memory_limit);
  // Memory of one simulation is that of the next: giving it back costs a third of its time.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  Held held;
  std::string message;
  while (receive_message(socket, message)) {
    Json reply;
    try {
      reply = answer(message, held);
    } catch (const std::bad_alloc&) {
      held.model.reset();
      reply = {{"error", "out of memory"}};
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    if (!send_message(socket, to_line(reply) + "\n")) {
      break;
    }
  }
  ::_exit(0);
}

}  // namespace

LiveProcess::LiveProcess(Time time_limit, Bytes memory_limit)
    : time_limit_(time_limit), memory_limit_(memory_limit) {
  begin();
}

LiveProcess::~LiveProcess() { end(); }

void LiveProcess::begin() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[0]);
    serve_model(ends[1], memory_limit_);
  }
  ::close(ends[1]);
  socket_ = ends[0];
  if (child_ < 0) {
    ::close(socket_);
    throw Error(fmt::format("cannot fork a process: {}", std::strerror(errno)));
  }
}

void LiveProcess::end() {
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::string> LiveProcess::ask(const std::string& message) {
  struct Asking {
    explicit Asking(std::atomic<int>& counted) : count(counted), before(count++) {}
    ~Asking() { --count; }
    std::atomic<int>& count;
    int before;
  };
  const Asking asking(asking_);
  if (asking.before > kMostWaiting) {
    return std::nullopt;
  }
  const std::scoped_lock lock(mutex_);
  std::string reply;
  if (send_message(socket_, message)) {
    pollfd readable{socket_, POLLIN, 0};
    const int limit_ms = time_limit_ > Time() ? static_cast<int>(time_limit_.seconds() * 1e3) : -1;
    if (::poll(&readable, 1, limit_ms) > 0 && receive_message(socket_, reply)) {
      return reply;
    }
  }
  end();
  begin();
  return std::nullopt;
}

}  // namespace lockstep
