// Any bytes either give one Error or as many sizes as there are ranks or pairs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "simulator/collectives/split.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const CommType op : {CommType::kAllToAll, CommType::kAllGather}) {
    try {
      const Split split = parse_split(text, "fuzz.txt", op, 3);
      if (split.sizes.size() != (op == CommType::kAllToAll ? 9U : 3U) || split.bytes <= Bytes(0)) {
        std::abort();
      }
    } catch (const Error&) {
    }
  }
  return 0;
}
