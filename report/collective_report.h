#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "simulator/network/network_engine.h"
#include "workloads/comm.h"

namespace lockstep {

/// What one engine says about a collective of one size.
struct CollectiveTiming {
  Time time;                                ///< until the last rank has finished
  Time error;                               ///< by how much it may be off, as far as told; 0: exact
  std::int64_t transfers = 0;               ///< carried out one by one; 0: a formula
  std::optional<PacketStatistics> packets;  ///< of the packet engine
};

/// A line of the table: one size, every engine's answer in the order of CollectiveSweep::engines.
struct CollectivePoint {
  Bytes bytes;
  std::string algorithm, protocol;  ///< of the engines that simulate; empty where none does
  std::int32_t channels = 0;        ///< 0: as many as the algorithm takes by itself
  std::vector<CollectiveTiming> timings;
};

/// One collective over a range of sizes.
struct CollectiveSweep {
  CommType op = CommType::kNone;
  std::int32_t ranks = 0, servers = 0;
  std::string topology, flavour, placement;
  std::vector<std::string> engines;
  std::vector<CollectivePoint> points;
  std::size_t missing = 0;  ///< sizes that a StopSignal kept from being worked out
  std::vector<std::string> warnings;
};

/// Bytes that cross a rank's link per byte of the tensor, by which nccl-tests multiplies the
/// algorithm bandwidth (its PERFORMANCE.md): all-reduce 2(n-1)/n; all-gather, reduce-scatter and
/// all-to-all (n-1)/n; others 1.
double bus_factor(CommType op, std::int64_t ranks);

/// A table as nccl-tests prints it, time, algbw and busbw once for each engine: side by side, or
/// where a line would have more than `width` characters an engine's table below the other's.
std::string collective_table(const CollectiveSweep& sweep,
                             std::size_t width = std::numeric_limits<std::size_t>::max());

/// The same as one JSON document (docs/formats/collective-json.md).
std::string collective_json(const CollectiveSweep& sweep);

}  // namespace lockstep
