#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// One communication of a DeepSpeed log, as the log spells it.
struct DeepSpeedLogEntry {
  std::string_view operation;  ///< "all_gather"
  std::string_view size;       ///< "9.77 KB", "0B"
  std::string_view bandwidth;  ///< algbw in Gbps
  friend bool operator==(const DeepSpeedLogEntry&, const DeepSpeedLogEntry&) = default;
};

/// Calls `report` for each line of a DeepSpeed log that names an operation, a size and a bandwidth,
/// in this order:
///
///     … comm op: all_gather | time (ms): 1.02 | msg size: 9.77 KB | algbw (Gbps): 0.08 | …
///
/// All others are passed over. O(size); nothing is stored.
/// ERRORS: an operation AICB does not know, with the line.
void read_deepspeed_log(std::string_view text, const std::string& file,
                        const std::function<void(const DeepSpeedLogEntry&)>& report);

}  // namespace lockstep
