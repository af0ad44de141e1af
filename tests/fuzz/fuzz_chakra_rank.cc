#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "workloads/chakra_et.h"

/// Any bytes as one rank's execution trace give operations that come after those they depend on, or
/// an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  try {
    const ChakraRank rank =
        read_chakra_rank({reinterpret_cast<const char*>(data), size}, "fuzz.0.et");
    LOCKSTEP_CHECK(rank.group.size() == rank.program.ops.size(), "a group an operation");
    for (std::size_t i = 0; i < rank.program.ops.size(); ++i) {
      const Op& op = rank.program.ops[i];
      LOCKSTEP_CHECK(op.compute >= Time() && op.bytes >= Bytes(), "a time and a size");
      LOCKSTEP_CHECK(static_cast<std::size_t>(op.stream) < rank.program.streams.size(), "a stream");
      for (const std::int32_t before : op.after) {
        LOCKSTEP_CHECK(before >= 0 && static_cast<std::size_t>(before) < i, "an earlier one");
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
