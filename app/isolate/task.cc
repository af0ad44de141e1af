#include "app/isolate/task.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::array<std::pair<Ending, std::string_view>, 8> kNames{{
    {Ending::kDone, "done"},
    {Ending::kCheckFailed, "check-failed"},
    {Ending::kBadInput, "bad-input"},
    {Ending::kMissingPart, "missing-part"},
    {Ending::kBug, "bug"},
    {Ending::kTimedOut, "timed-out"},
    {Ending::kOutOfMemory, "out-of-memory"},
    {Ending::kCrashed, "crashed"},
}};

}  // namespace

std::string_view to_text(Ending ending) {
  for (const auto& [value, name] : kNames) {
    if (value == ending) {
      return name;
    }
  }
  LOCKSTEP_CHECK(false, "an ending without a name");
}

Ending ending_named(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) {
      return value;
    }
  }
  throw Error(fmt::format("'{}' is no way to end", name));
}

}  // namespace lockstep
