// Any bytes are refused with one Error or leave a state; the part that was taken in gives it again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/whatif/follow_state.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  FollowState state, again;
  try {
    const std::size_t end = read_follow_journal(text, "fuzz.jsonl", {"job", "0f"}, {}, state);
    if (end > size ||
        read_follow_journal(text.substr(0, end), "fuzz.jsonl", {"job", "0f"}, {}, again) != end) {
      std::abort();
    }
  } catch (const Error&) {
    return 0;
  }
  if (state.files != again.files || state.steps != again.steps || state.alerted != again.alerted) {
    std::abort();
  }
  return 0;
}
