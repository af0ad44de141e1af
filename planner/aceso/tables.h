#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::aceso {

/// What was measured of one op at one microbatch, tensor-parallel degree and algorithm.
/// Sizes are in MB of 2^20 bytes and per GPU, times in microseconds.
struct OpCost {
  double forward_us = 0, backward_us = 0;  ///< tensor-parallel collectives included
  double input_mb = 0, output_mb = 0;      ///< with the tensors in flight past the op
  double weights_mb = 0, activations_mb = 0;
  double forward_reserved_mb = 0, backward_reserved_mb = 0;
};

/// Where nothing was measured every field has this value, which no plan can afford.
inline constexpr double kUnprofiled = 1e6;
inline constexpr OpCost kUnprofiledOp{kUnprofiled, kUnprofiled, kUnprofiled, kUnprofiled,
                                      kUnprofiled, kUnprofiled, kUnprofiled, kUnprofiled};

/// One op table: rows in the model's order.
struct OpTable {
  std::vector<std::string> names;
  std::vector<OpCost> costs;
};

/// Time of a collective in ms by the integer size in MB.
using CollectiveTable = std::map<std::int64_t, double>;

/// Bandwidths in GB/s for 1, 2, 4 … 1024 MB.
using PeerTable = std::array<double, 11>;

/// Readers of the three kinds of CSV file of a profile database (planners, section 1).
/// ERRORS: Error with file, line and column: fields missing, no numbers, negative or not finite,
/// an empty table, a size that stands twice with different times.
OpTable parse_op_table(std::string_view text, const std::string& file);
CollectiveTable parse_collective_table(std::string_view text, const std::string& file);
PeerTable parse_peer_table(std::string_view text, const std::string& file);

}  // namespace lockstep::aceso
