#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "workloads/workload.h"

namespace lockstep {

/// What SimAI's analytical and packet engines both make of a layer table. Flavour simai does the
/// same on every engine.

/// Communication columns of a layer.
enum class LayerColumn : std::uint8_t { kForward, kInputGrad, kWeightGrad };

/// How many ranks SimAI's bandwidths count: integer division, and the group of a column decides
/// only between two sizes. `gpus`: all_gpus of the header, however many take part.
std::int64_t simai_group_size(LayerColumn column, GroupKind group, const Parallelism& parallel,
                              std::int64_t gpus);

/// Forward messages of 1 … 4095 bytes grow to 4096.
Bytes simai_bytes(LayerColumn column, Bytes bytes);

/// SimAI reads the first entry of a list of layers again and again.
std::span<const std::int32_t> simai_listed(std::span<const std::int32_t> layers);

/// Warns where the table has another policy than the one by whose rules every table runs.
void warn_of_policy(const LayerTable& table, std::vector<std::string>& warnings);

}  // namespace lockstep
