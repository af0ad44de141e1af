#pragma once

#include "trace/physical_log.h"

namespace lockstep {

/// Programs that count bytes in 32 bits write sizes from 2 or 4 GiB on without their multiples of
/// 4 GiB: negative, 0 or small ones. Where the row's time and algorithm bandwidth (bytes / time)
/// tell them, to a sixteenth of that and to their own digits, they are put back, with a warning.
/// False: the size is negative, and nothing tells the right one; also with a warning.
bool unwrap_size(CommRow& row, Warnings& warnings);

}  // namespace lockstep
