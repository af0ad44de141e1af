#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/warnings.h"
#include "simulator/network/packet_engine_options.h"
#include "simulator/network/packet_engine_simai_entry.h"

namespace lockstep {

/// The three ECN maps of a SimAI.conf, "n rate value rate value …", put together by rate. A map
/// that the file lacks is SimAI's own; a rate that a map lacks has 0 there, as in SimAI.
class SimaiEcnMaps {
 public:
  static bool is_one(std::string_view key);

  /// A line of one of the maps; more than one of a map add up.
  void read(const SimaiConfEntry& entry);
  /// Sets the options' rows if there was any; warns of rates that a map lacks, and of thresholds in
  /// the wrong order.
  void apply(PacketOptions& options, Warnings& warnings) const;

 private:
  struct Map {
    std::map<std::int64_t, double> values;  ///< by bits per second, in bytes or as a probability
    std::size_t line = 0;                   ///< the last one; 0: the file has none
  };
  using Maps = std::array<Map, 3>;

  void warn_of_gaps(const Maps& maps, Warnings& warnings) const;

  Maps maps_;
  std::string file_;
};

}  // namespace lockstep
