// Any bytes either give one Error or a workload that is written and reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "workloads/describe.h"
#include "workloads/workload_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Workload workload;
  try {
    workload = read_workload_json(text, "fuzz.json");
  } catch (const Error&) {
    return 0;
  }
  describe(workload);
  if (!(read_workload_json(to_workload_json(workload), "fuzz.json") == workload)) {
    std::abort();
  }
  return 0;
}
