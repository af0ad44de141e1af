#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// A line that bars are drawn on, or with tracks below it a heading for them ("rank 3" over
/// "compute", "tp", …).
struct TimelineTrack {
  std::string name;
  std::int32_t parent = -1;  ///< an earlier track; -1: stands at the top
  std::int32_t number = 0;   ///< Trace Event's pid (at the top) or tid, unique among its siblings
};

/// One bar: what was done from `begin` to `end`.
struct TimelineEvent {
  std::int32_t track = 0;
  std::int32_t name = 0;  ///< index into Timeline::names
  std::int32_t kind = 0;  ///< index into Timeline::kinds
  std::int32_t arguments = 0;
  std::int64_t first_argument = 0;  ///< `arguments` of Timeline::arguments from here
  Time begin, end;
};

/// A number that belongs to a bar: its bytes, its microbatch.
struct TimelineArgument {
  std::int32_t key = 0;  ///< index into Timeline::keys
  std::int64_t value = 0;
};

/// An arrow from the begin of one event to the end of another; that end is not before that begin.
struct TimelineFlow {
  std::int64_t from = 0, to = 0;  ///< indices into Timeline::events
};

/// Who did what when, for looking at: bars on tracks, numbers at them, arrows between them. Plain
/// data with shared names; tracks are shown in their order, events may come in any.
struct Timeline {
  std::vector<TimelineTrack> tracks;
  std::vector<std::string> names;  ///< "attention_column forward", …
  std::vector<std::string> kinds;  ///< "compute", "allreduce", …
  std::vector<std::string> keys;   ///< "bytes", …
  std::vector<TimelineEvent> events;
  std::vector<TimelineArgument> arguments;
  std::vector<TimelineFlow> flows;
  std::int64_t ranks = 0;  ///< of the job, where not all of them have tracks; else 0
};

/// Writes the Trace Event format that Perfetto and chrome://tracing open: a track at the top is a
/// process, those below it are its threads; times are microseconds with all picoseconds. Packed if
/// `path` ends in ".gz". PRECONDITION: tracks are nested once, events lie on those below.
/// ERRORS: those of AtomicFile.
void write_chrome_trace(const Timeline& timeline, const std::string& path);

/// Writes one row an event: rank,track,kind,name,begin_s,end_s,bytes,together. `rank` is the number
/// of the track above, bytes the argument of that name, 0 where there is none; `together` a number
/// that those have in common which arrows join, else nothing.
void write_timeline_csv(const Timeline& timeline, const std::string& path);

}  // namespace lockstep
