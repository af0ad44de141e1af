// Any bytes either give one Error or rows that pass the checks.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "trace/read_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    read_trace_parquet(bytes, "fuzz.parquet",
                       [](Trace&& rows) { check_rows(rows, "fuzz.parquet"); });
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
