#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// One communication of a DeepSpeed log, as the log spells it.
struct DeepSpeedLogEntry {
  std::string operation;  ///< "all_gather"
  std::string size;       ///< "9.77 KB", "0B"
  std::string bandwidth;  ///< algbw in Gbps
  friend bool operator==(const DeepSpeedLogEntry&, const DeepSpeedLogEntry&) = default;
};

/// The lines of a DeepSpeed log that name an operation, a size and a bandwidth:
///
///     … comm op: all_gather | time (ms): 1.02 | msg size: 9.77 KB | algbw (Gbps): 0.08 | …
///
/// All others are passed over. O(size).
/// ERRORS: an operation AICB does not know, with the line.
std::vector<DeepSpeedLogEntry> read_deepspeed_log(std::string_view text, const std::string& file);

}  // namespace lockstep
