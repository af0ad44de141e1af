// The topology readers: whatever the bytes, a topology or an Error. What is read is written back
// and read again, described and drawn.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "topologies/describe.h"
#include "topologies/draw.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace {

constexpr std::size_t kMostNodesToDescribe = 1000;

void round_trip(std::string_view text) {
  using namespace lockstep;
  const Topology topology = parse_topology(text, "fuzz");
  LOCKSTEP_CHECK(parse_topology(to_json_text(topology), "fuzz") == topology, "JSON round trip");
  std::string simai;
  try {
    simai = to_simai_text(topology);
  } catch (const Error&) {
    // Only our own form holds this one.
  }
  if (!simai.empty()) {
    LOCKSTEP_CHECK(to_simai_text(parse_topology(simai, "fuzz")) == simai, "SimAI round trip");
  }
  if (topology.nodes.size() <= kMostNodesToDescribe) {
    LOCKSTEP_CHECK(!to_json_text(describe(topology)).empty(), "description");
    LOCKSTEP_CHECK(!draw(topology).empty(), "picture");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    round_trip({reinterpret_cast<const char*>(data), size});
  } catch (const lockstep::Error&) {
    // What bad input should end in.
  }
  return 0;
}
