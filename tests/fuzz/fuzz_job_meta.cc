// Any bytes either give one Error or a meta file that is written and reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "trace/job_meta.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  JobMeta meta;
  try {
    meta = read_job_meta(text, "fuzz.yaml");
  } catch (const Error&) {
    return 0;
  }
  if (!(read_job_meta(to_yaml_text(meta), "fuzz.yaml") == meta)) {
    std::abort();
  }
  return 0;
}
