#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::uint32_t kLongestFrame = 1U << 28;

/// What passes through a connection between ranks: a length, a kind and bytes.
struct Frame {
  char kind = 0;
  std::string text;
};

/// Returns whether it has been sent.
bool send_frame(int socket, char kind, std::string_view text);

/// The next frame, all of which comes by then; none: the connection has ended, or it is too long.
std::optional<Frame> receive_frame(
    int socket, std::uint32_t longest = kLongestFrame,
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());

}  // namespace lockstep
