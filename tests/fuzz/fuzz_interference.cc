// Any bytes either give one Error or a table that is written and reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "profiler/sweep/interference.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  InterferenceTable table;
  try {
    table = read_interference_json(text, "fuzz.json");
  } catch (const Error&) {
    return 0;
  }
  const std::string written = to_interference_json(table);
  if (to_interference_json(read_interference_json(written, "fuzz.json")) != written) {
    std::abort();
  }
  return 0;
}
