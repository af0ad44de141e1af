#include "app/isolate/message.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/json_number.h"

namespace lockstep {
namespace {

std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

/// What commands write may be any bytes; strings of CBOR need not be UTF-8 for this library.
Json unpacked(std::string_view message) { return Json::from_cbor(message.begin(), message.end()); }

bool send_all(int socket, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t done = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (done > 0) {
      bytes += done;
      size -= static_cast<std::size_t>(done);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool receive_all(int socket, char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t done = ::recv(socket, bytes, size, 0);
    if (done > 0) {
      bytes += done;
      size -= static_cast<std::size_t>(done);
    } else if (done == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string to_message(const IsolatedTask& task) {
  return packed({{"arguments", task.arguments},
                 {"folder", task.folder},
                 {"time_ps", task.time_limit.count_ps()},
                 {"memory", task.memory_limit.count()},
                 {"output", task.output_limit.count()},
                 {"confined", task.confined},
                 {"readable", task.readable}});
}

IsolatedTask task_of_message(std::string_view message) {
  const Json json = unpacked(message);
  return {.arguments = json.at("arguments").get<std::vector<std::string>>(),
          .folder = json.at("folder").get<std::string>(),
          .time_limit = Time::ps(whole_number(json.at("time_ps"))),
          .memory_limit = Bytes(whole_number(json.at("memory"))),
          .output_limit = Bytes(whole_number(json.at("output"))),
          .confined = json.at("confined").get<bool>(),
          .readable = json.at("readable").get<std::vector<std::string>>()};
}

std::string to_message(const IsolatedResult& result) {
  return packed({{"ending", to_text(result.ending)},
                 {"exit_code", result.exit_code},
                 {"out", result.out},
                 {"err", result.err},
                 {"reason", result.reason},
                 {"wall_s", result.wall_s},
                 {"cpu_s", result.cpu_s},
                 {"peak", result.peak_bytes}});
}

IsolatedResult result_of_message(std::string_view message) {
  const Json json = unpacked(message);
  return {.ending = ending_named(json.at("ending").get<std::string>()),
          .exit_code = static_cast<int>(whole_number(json.at("exit_code"))),
          .out = json.at("out").get<std::string>(),
          .err = json.at("err").get<std::string>(),
          .reason = json.at("reason").get<std::string>(),
          .wall_s = json.at("wall_s").get<double>(),
          .cpu_s = json.at("cpu_s").get<double>(),
          .peak_bytes = whole_number(json.at("peak"))};
}

bool send_message(int socket, std::string_view message) {
  const std::uint64_t size = message.size();
  std::string framed(sizeof size, '\0');
  std::memcpy(framed.data(), &size, sizeof size);
  framed += message;
  return send_all(socket, framed.data(), framed.size());
}

bool wait_for_message(int socket, Time limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  pollfd readable{socket, POLLIN, 0};
  while (true) {
    int wait_ms = -1;
    if (limit > Time()) {
      const std::chrono::duration<double, std::milli> passed = Clock::now() - begin;
      wait_ms = static_cast<int>(std::clamp(limit.seconds() * 1e3 - passed.count(), 0.0, 1e9));
    }
    const int ready = ::poll(&readable, 1, wait_ms);
    if (ready > 0 || (ready == 0 && wait_ms < 1'000'000'000)) {
      return ready > 0;
    }
  }
}

bool receive_message(int socket, std::string& message) {
  std::uint64_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size)) {
    return false;
  }
  message.resize(size);
  return receive_all(socket, message.data(), message.size());
}

}  // namespace lockstep
