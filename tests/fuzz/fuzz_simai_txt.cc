// Any bytes either give one Error or a workload that is valid, is written, and reads back the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "workloads/simai_txt.h"
#include "workloads/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Workload workload;
  try {
    Warnings warnings;
    workload = read_simai_txt(text, "fuzz.txt", &warnings);
  } catch (const Error&) {
    return 0;
  }
  validate(workload);
  const std::string written = to_simai_txt(workload);
  if (to_simai_txt(read_simai_txt(written, "fuzz.txt")) != written) {
    std::abort();
  }
  return 0;
}
