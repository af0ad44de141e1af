// Any bytes either give one Error or measurements that are written and read back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "profiler/measurements.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Measurements profile;
  try {
    profile = read_measurements(text, "fuzz.json");
  } catch (const Error&) {
    return 0;
  }
  if (!(read_measurements(to_measurements_json(profile), "fuzz.json") == profile)) {
    std::abort();
  }
  return 0;
}
