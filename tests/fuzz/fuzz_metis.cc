// Any bytes as hostfile, clusterfile or profile give one Error or something consistent.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "planner/metis/cluster.h"
#include "planner/metis/profile.h"

namespace {

template <class F>
void attempt(F&& f) {
  try {
    f();
  } catch (const lockstep::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::metis;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kCluster =
      R"({"10.0.0.1":{"instance_type":"A100","inter_bandwidth":1,"intra_bandwidth":1,"memory":1}})";
  attempt([&] {
    if (parse_cluster(text, "hosts", kCluster, "cluster").front().gpus < 1) {
      std::abort();
    }
  });
  attempt([&] { parse_cluster("10.0.0.1 slots=2\n", "hosts", text, "cluster"); });
  attempt([&] {
    const Profile profile = parse_profile(text, "profile");
    if (profile.layer_ms.size() != profile.layer_mb.size()) {
      std::abort();
    }
  });
  return 0;
}
