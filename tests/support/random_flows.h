#pragma once

#include <vector>

#include "base/rng.h"
#include "simulator/network/network_engine.h"

namespace lockstep::testing {

/// `count` transfers between different GPUs 0 … gpus-1, tag = index; sizes 0 … largest, some equal,
/// starts within `spread`, some equal.
inline std::vector<FlowSpec> random_flows(Rng& rng, int count, std::uint64_t gpus,
                                          std::uint64_t largest, Time spread) {
  std::vector<FlowSpec> flows;
  for (int i = 0; i < count; ++i) {
    FlowSpec flow;
    flow.source = NodeId(static_cast<std::int32_t>(rng.below(gpus)));
    flow.destination = NodeId(static_cast<std::int32_t>(
        (static_cast<std::uint64_t>(flow.source.value) + 1 + rng.below(gpus - 1)) % gpus));
    flow.bytes =
        Bytes(static_cast<std::int64_t>(rng.below(3) == 0 ? largest / 2 : rng.below(largest + 1)));
    flow.start = Time::ps(rng.below(3) == 0 ? 0 : rng.between(0, spread.count_ps()));
    flow.channel = static_cast<std::int32_t>(rng.below(4));
    flow.tag = static_cast<std::uint64_t>(i);
    flows.push_back(flow);
  }
  return flows;
}

}  // namespace lockstep::testing
