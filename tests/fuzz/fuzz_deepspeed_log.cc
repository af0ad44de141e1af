// The reader of DeepSpeed logs: whatever the bytes, entries or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generator/comm_names.h"
#include "generator/deepspeed_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    lockstep::read_deepspeed_log(text, "fuzz", [](const lockstep::DeepSpeedLogEntry& entry) {
      LOCKSTEP_CHECK(lockstep::is_aicb_operation(entry.operation), "a known operation");
    });
  } catch (const lockstep::Error&) {
  }
  return 0;
}
