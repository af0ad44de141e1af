#pragma once

#include <compare>
#include <cstdint>

#include "base/json.h"

namespace lockstep {

/// How a step is changed while one looks at it. All 1: as it was loaded.
struct LiveSliders {
  double nvlink_bandwidth = 1, network_bandwidth = 1;  ///< factors of every link's rate
  double latency = 1;    ///< factor of every link's delay and of the transfers' software time
  double gpu_speed = 1;  ///< all computation takes so many times less
  double straggler = 1;  ///< computation on one GPU takes so many times longer
  std::int32_t straggler_gpu = 0;

  friend auto operator<=>(const LiveSliders&, const LiveSliders&) = default;
};

/// The sliders in a JSON object; absent ones are 1. ERRORS: unknown keys, values out of range.
LiveSliders sliders_of(const Json& json);

}  // namespace lockstep
