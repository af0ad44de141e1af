#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// One bar of a picture of the step: what a rank did on one of its tracks.
struct TimelineEvent {
  std::int32_t rank = 0;
  std::int32_t track = 0;  ///< index into Timeline::tracks
  std::int32_t name = 0;   ///< index into Timeline::names
  std::int32_t kind = 0;   ///< index into Timeline::kinds
  Time begin, end;
  Bytes bytes;  ///< communication only
};

/// Who did what when, for looking at. Names are shared; events in the order in which they ended.
struct Timeline {
  std::vector<std::string> tracks;  ///< "compute", "tp", …
  std::vector<std::string> names;   ///< "attention_column forward", …
  std::vector<std::string> kinds;   ///< "compute", "allreduce", …
  std::vector<TimelineEvent> events;
};

/// Writes the Trace Event format that Perfetto and chrome://tracing open; a rank is a process, a
/// track a thread, times are microseconds with all picoseconds. Packed if `path` ends in ".gz".
/// ERRORS: those of AtomicFile.
void write_chrome_trace(const Timeline& timeline, const std::string& path);

/// Writes one row an event: rank,track,kind,name,begin_s,end_s,bytes.
void write_timeline_csv(const Timeline& timeline, const std::string& path);

}  // namespace lockstep
