#include "profiler/run/frames.h"

#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* data, std::size_t size, Clock::time_point until) {
  while (size > 0) {
    if (until != Clock::time_point::max()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd waiting{socket, POLLIN, 0};
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) {
        return false;
      }
    }
    const ssize_t got = ::recv(socket, data, size, 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool send_frame(int socket, char kind, std::string_view text) {
  std::array<char, 5> head{};
  const auto length = static_cast<std::uint32_t>(text.size());
  for (int i = 0; i < 4; ++i) {
    head[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xFF);
  }
  head[4] = kind;
  return send_all(socket, head.data(), head.size()) && send_all(socket, text.data(), text.size());
}

std::optional<Frame> receive_frame(int socket, std::uint32_t longest,
                                   std::chrono::steady_clock::time_point until) {
  std::array<char, 5> head{};
  if (!receive_all(socket, head.data(), head.size(), until)) {
    return std::nullopt;
  }
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i) {
    length |=
        static_cast<std::uint32_t>(static_cast<unsigned char>(head[static_cast<std::size_t>(i)]))
        << (8 * i);
  }
  if (length > longest) {
    return std::nullopt;
  }
  Frame frame{head[4], std::string(length, '\0')};
  if (!receive_all(socket, frame.text.data(), length, until)) {
    return std::nullopt;
  }
  return frame;
}

}  // namespace lockstep
