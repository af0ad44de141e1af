#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "workloads/comm.h"

namespace lockstep {

/// Measured bus bandwidths by group and operation, from SimAI's busbw.yaml. A value stands for the
/// whole formula: no efficiency is applied to it.
///
/// Section EP is the expert groups: EP and the data parallelism among their replicas (DP_EP).
struct BusBandwidths {
  enum Section : std::uint8_t { kTp, kDp, kEp };
  /// [section][all-reduce, all-gather, reduce-scatter, all-to-all]; empty: use the formula.
  std::array<std::array<std::optional<Bandwidth>, 4>, 3> collectives;
  std::optional<Bandwidth> pipeline;  ///< between neighbouring stages

  std::optional<Bandwidth> find(GroupKind group, CommType op) const;
};

/// Reads SimAI's layout, which is YAML in name only (a title line, the same keys in one mapping
/// again and again): a title, then sections TP, DP, EP with the entries allreduce, allgather,
/// reducescatter and alltoall, and section PP with busbw. Values are GB/s (1e9 bytes) above 0, or
/// null. Keys may end in a comma ("allreduce,: 300"); '#' begins a comment. Title, indentation,
/// sections and entries may be absent, and sections and entries stand in any order.
/// ERRORS: Error with file, line and field (unknown section or entry, given twice, bad value).
BusBandwidths parse_busbw_yaml(std::string_view text, const std::string& file);
BusBandwidths read_busbw_yaml(const std::string& path);

}  // namespace lockstep
