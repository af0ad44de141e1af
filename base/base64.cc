#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 3))) {
    const auto byte = [&](std::size_t i) {
      return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : std::uint32_t{0};
    };
    const std::uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += kDigits[group >> 18];
    text += kDigits[group >> 12 & 63];
    text += bytes.size() > 1 ? kDigits[group >> 6 & 63] : '=';
    text += bytes.size() > 2 ? kDigits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool padded = i >= text.size() - padding;
    const std::size_t digit = padded ? 0 : kDigits.find(text[i]);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    group = group << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 == 3) {
      bytes += static_cast<char>(group >> 16 & 255);
      bytes += static_cast<char>(group >> 8 & 255);
      bytes += static_cast<char>(group & 255);
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace lockstep
