#include "base/input_limit.h"

#include <atomic>
#include <cstdlib>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr Bytes kDefault{std::int64_t{4} << 30};

std::atomic<std::int64_t> typed{-1};  // of --max-input; -1: not given

/// What the user has said, if anything.
std::optional<Bytes> wished() {
  if (const std::int64_t limit = typed; limit >= 0) {
    return Bytes(limit);
  }
  const char* text = std::getenv("LOCKSTEP_MAX_INPUT");
  if (text == nullptr || *text == '\0') {
    return std::nullopt;
  }
  try {
    return parse_bytes(text);
  } catch (Error& error) {
    throw std::move(error).field("LOCKSTEP_MAX_INPUT");
  }
}

}  // namespace

Bytes input_limit() { return wished().value_or(kDefault); }

Bytes input_limit(Bytes usual) { return wished().value_or(std::min(usual, kDefault)); }

Error input_too_large(const std::string& path, const std::string& what, Bytes limit) {
  return Error(fmt::format("{} more than {}", what, to_text(limit)))
      .at(path)
      .hint("if that is right, raise the limit: --max-input SIZE, or LOCKSTEP_MAX_INPUT=SIZE");
}

InputLimit::InputLimit(std::optional<Bytes> limit) : before_(typed) {
  if (limit) {
    typed = limit->count();
  }
}

InputLimit::~InputLimit() { typed = before_; }

}  // namespace lockstep
