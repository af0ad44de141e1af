#include "profiler/run/join.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "profiler/run/frames.h"

namespace lockstep {
namespace {

using Clock = Listener::Clock;

struct Addresses {
  addrinfo* list = nullptr;
  ~Addresses() {
    if (list != nullptr) {
      ::freeaddrinfo(list);
    }
  }
};

void resolve(const RankPlace& place, bool passive, Addresses& out) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  const int problem = ::getaddrinfo(passive ? nullptr : place.host.c_str(),
                                    std::to_string(place.port).c_str(), &hints, &out.list);
  if (problem != 0) {
    throw network_error(place, fmt::format("no such address: {}", ::gai_strerror(problem)));
  }
}

/// Ranks that look for rank 0 there are on its own machine: it listens to no others.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void no_delay(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Error network_error(const RankPlace& place, const std::string& what) {
  return Error(what).at(fmt::format("{}:{}", place.host, place.port));
}

Listener::Listener(const RankPlace& place) {
  Addresses addresses;
  resolve(place, !is_loopback(place.host), addresses);
  for (const addrinfo* at = addresses.list; at != nullptr && socket_ < 0; at = at->ai_next) {
    socket_ = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (socket_ < 0) {
      continue;
    }
    const int on = 1;
    (void)::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket_, at->ai_addr, at->ai_addrlen) != 0 || ::listen(socket_, place.world) != 0) {
      (void)::close(socket_);
      socket_ = -1;
    }
  }
  if (socket_ < 0) {
    throw network_error(place, fmt::format("cannot listen: {}", std::strerror(errno)))
        .hint("another job may be there: --master HOST:PORT names another port");
  }
}

Listener::~Listener() { (void)::close(socket_); }

int Listener::accept(Clock::time_point until) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) {
      return -1;
    }
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      no_delay(socket);
      return socket;
    }
  }
}

void Listener::tell_comers(const std::string& reason, int count, Clock::time_point until) const {
  while (count > 0) {
    const int socket = accept(until);
    if (socket < 0) {
      return;
    }
    const std::optional<Frame> frame =
        receive_frame(socket, kLongestHello, std::min(until, Clock::now() + kHelloTime));
    if (frame && frame->kind == kHello) {
      (void)send_frame(socket, kGaveUp, reason);
    }
    count -= frame && (frame->kind == kHello || frame->kind == kGaveUp) ? 1 : 0;
    (void)::close(socket);
  }
}

int connect_to_first(const RankPlace& place, Clock::time_point until) {
  Addresses addresses;
  resolve(place, false, addresses);
  for (;;) {
    for (const addrinfo* at = addresses.list; at != nullptr; at = at->ai_next) {
      const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
      if (socket >= 0 && ::connect(socket, at->ai_addr, at->ai_addrlen) == 0) {
        no_delay(socket);
        return socket;
      }
      if (socket >= 0) {
        (void)::close(socket);
      }
    }
    if (Clock::now() > until) {
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void tell_early_failure(const RankPlace& place, const std::string& job, const std::string& reason,
                        double timeout_s) noexcept {
  if (place.world < 2) {
    return;
  }
  try {
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::min(std::chrono::duration<double>(timeout_s),
                                                   std::chrono::duration<double>(kTellingTime)));
    if (place.rank == 0) {
      Listener(place).tell_comers("rank 0 failed: " + reason, place.world - 1, until);
      return;
    }
    const int socket = connect_to_first(place, until);
    if (socket >= 0) {
      (void)send_frame(socket, kGaveUp,
                       fmt::format("{} {} {}\n{}", place.rank, place.world, job, reason));
      (void)::close(socket);
    }
  } catch (const std::exception&) {  // the reason itself is told all the same
    return;
  }
}

}  // namespace lockstep
