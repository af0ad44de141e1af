#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Any bytes as RFC 4648's Base64 with padding, on one line.
std::string to_base64(std::string_view bytes);

/// Nothing where the text is no such Base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace lockstep
