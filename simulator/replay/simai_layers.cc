#include "simulator/replay/simai_layers.h"

#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {

std::int64_t simai_group_size(LayerColumn column, GroupKind group, const Parallelism& parallel,
                              std::int64_t gpus) {
  const std::int64_t dp = gpus / (parallel.tp * parallel.pp);
  if (column == LayerColumn::kWeightGrad) {
    return group == GroupKind::kDpEp ? dp / parallel.ep : dp;
  }
  return group == GroupKind::kEp ? parallel.ep : parallel.tp;
}

Bytes simai_bytes(LayerColumn column, Bytes bytes) {
  constexpr Bytes kSmallest{4096};
  const bool grows = column == LayerColumn::kForward && bytes > Bytes(0) && bytes < kSmallest;
  return grows ? kSmallest : bytes;
}

std::span<const std::int32_t> simai_listed(std::span<const std::int32_t> layers) {
  return layers.first(layers.empty() ? 0 : 1);
}

void warn_of_policy(const LayerTable& table, std::vector<std::string>& warnings) {
  constexpr std::string_view kSimulated = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
  if (table.policy != kSimulated) {
    warnings.push_back(
        fmt::format("policy {} runs by the rules of {}", printable(table.policy), kSimulated));
  }
}

}  // namespace lockstep
