#pragma once

#include <array>
#include <utility>

#include "trace/physical_log.h"

namespace lockstep {

/// Programs that count bytes in 32 bits write sizes from 2 or 4 GiB on without their multiples of
/// 4 GiB: negative, 0 or small ones. Where the row's time and algorithm bandwidth (bytes / time)
/// tell them, to a sixteenth of that and to their own digits, they are put back, with a warning.
/// False: the size is negative, and nothing tells the right one; also with a warning.
bool unwrap_size(CommRow& row, Warnings& warnings);

/// Sizes of a table that goes through them upwards, as nccl-tests does, where bandwidths do not
/// tell which wrapped.
class GrowingSizes {
 public:
  /// Whether the next row may be of its size. One that falls behind 256 MiB or more, and takes as
  /// long as 4 GiB beyond what it says would at the rate of the last one, has wrapped, and so may
  /// have those after it; with a warning. Sizes of 4 GiB and more were not counted in 32 bits.
  bool may_be(const CommRow& row, Warnings& warnings);

 private:
  /// The last row out of place, and in place; whether sizes wrapped behind it.
  std::array<std::pair<CommRow, bool>, 2> last_;
};

}  // namespace lockstep
