#include "app/serve/live_sliders.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr double kLowest = 0.01, kHighest = 100;

}  // namespace

LiveSliders sliders_of(const Json& json) {
  LiveSliders sliders;
  const JsonView view(json, "sliders");
  constexpr std::array<std::string_view, 6> kKeys{"nvlink_bandwidth", "network_bandwidth",
                                                  "latency",          "gpu_speed",
                                                  "straggler",        "straggler_gpu"};
  view.allow_keys(kKeys);
  const auto factor = [&](std::string_view key, double& value) {
    if (view.has(key)) {
      value = view[key].number();
      if (!(value >= kLowest && value <= kHighest)) {
        throw view[key].error(fmt::format("is not between {} and {}", kLowest, kHighest));
      }
    }
  };
  factor("nvlink_bandwidth", sliders.nvlink_bandwidth);
  factor("network_bandwidth", sliders.network_bandwidth);
  factor("latency", sliders.latency);
  factor("gpu_speed", sliders.gpu_speed);
  factor("straggler", sliders.straggler);
  if (view.has("straggler_gpu")) {
    sliders.straggler_gpu =
        static_cast<std::int32_t>(view["straggler_gpu"].integer(0, std::int64_t{1} << 30));
  }
  return sliders;
}

}  // namespace lockstep
