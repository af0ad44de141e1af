// Any bytes either give one Error or an algorithm; one that also passes its proof is built, and one
// in our JSON is written and reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "simulator/collectives/custom/algorithm_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const UserAlgorithm algorithm = parse_algorithm(text, "fuzz");
    std::size_t ranks = 0;
    if (const auto* named = std::get_if<NamedSchedule>(&algorithm.what)) {
      if (!(parse_schedule_json(to_schedule_json(*named), "fuzz") == *named)) {
        std::abort();
      }
      ranks = static_cast<std::size_t>(named->schedule.ranks);
      if (named->schedule.chunks > 64 || named->schedule.transfer_count() > 4096) {
        return 0;  // the proof takes long on purpose
      }
    } else {
      const auto& program = std::get<MscclProgram>(algorithm.what);
      ranks = program.gpus.size();
      if (program.chunks > 4096) {
        return 0;
      }
    }
    if (ranks > 64) {
      return 0;
    }
    CollectiveRequest request;
    request.op = algorithm.op();
    request.bytes = Bytes(1 << 20);
    algorithm.build(request, group_shape(std::vector<std::int32_t>(ranks, 0)));
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
