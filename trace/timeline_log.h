#pragma once

#include <cstdint>
#include <vector>

#include "trace/physical_log.h"
#include "trace/timeline.h"

namespace lockstep {

/// Of each bar: those that arrows join, over any number of them, have one number; others -1.
std::vector<std::int64_t> joined_bars(const Timeline& timeline);

/// What a time line shows, as what a log of its run would hold: a bar is an operation of the rank
/// that the track at the top has as number, on the stream that its own track has; kinds that are
/// communications are, in the group that their track is named after; bars that arrows join are one
/// collective or message. Times from the first bar on. PRECONDITION: as of write_chrome_trace().
void add_to_log(const Timeline& timeline, PhysicalLog& log);

}  // namespace lockstep
