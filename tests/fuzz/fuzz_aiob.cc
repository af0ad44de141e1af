// The AIOB compute-time reader: whatever the bytes, a profile or an Error. Without recomputation no
// time is larger than with it.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generator/compute_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lockstep::ComputeProfile;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ComputeProfile plain = ComputeProfile::from_aiob(text, false);
    const ComputeProfile again = ComputeProfile::from_aiob(text, true);
    LOCKSTEP_CHECK(plain.entries().size() == again.entries().size(), "same sections");
    for (std::size_t i = 0; i < plain.entries().size(); ++i) {
      LOCKSTEP_CHECK(plain.entries()[i].ns <= again.entries()[i].ns, "recomputation adds");
      plain.layer_time(plain.entries()[i].name, ComputeProfile::Pass::kForward);
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
