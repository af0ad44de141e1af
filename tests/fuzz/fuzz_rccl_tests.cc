#include "tests/fuzz/fuzz_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return lockstep::testing::fuzz_log("rccl-tests", data, size);
}
