#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "workloads/comm.h"

namespace lockstep {

/// Sizes that differ from rank to rank (docs/formats/split.md): for an all-to-all what each rank
/// sends to each (row = sender, own piece included), for an all-gather or reduce-scatter what each
/// rank gives or gets.
struct Split {
  std::vector<Bytes> sizes;  ///< all-to-all: ranks * ranks, row by row; else one a rank
  Bytes bytes;               ///< all-to-all: the largest row; else the sum. Not 0.
};

/// Reads it. ERRORS: Error with file and line for a word that is no size, rows of other than
/// `ranks` entries, another number of rows, nothing to send at all, and for an operation that has
/// no split.
Split parse_split(std::string_view text, const std::string& file, CommType op, std::size_t ranks);
Split read_split(const std::string& path, CommType op, std::size_t ranks);

}  // namespace lockstep
