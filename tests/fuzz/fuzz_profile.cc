// Any bytes either give one Error or a profile that is written and reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "generator/compute/profile_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  OperatorProfile profile;
  try {
    profile = read_profile_json(text, "fuzz.json");
  } catch (const Error&) {
    return 0;
  }
  if (!(read_profile_json(to_profile_json(profile), "fuzz.json") == profile)) {
    std::abort();
  }
  return 0;
}
