#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "trace/timeline.h"

namespace lockstep {

/// The timeline in Perfetto's own format, piece by piece: protobuf messages `Trace` of
/// TrackDescriptors and TrackEvents (perfetto/protos/perfetto/trace), whose bytes may be put one
/// behind the other. Times are nanoseconds, rounded down, so that
/// what touched still touches; names and keys are interned where they are first used, and a
/// category that is the name is left out. Where names are few, the packets of each line of bars are
/// a sequence of their own: times count from the packet before (a clock of the sequence), and the
/// track is the sequence's default. Tracks may be nested as deep
/// as one likes and are listed in their order.
///
/// Perfetto wants the bars of a track nested. Those that overlap otherwise go to further tracks of
/// the same name, which it draws as one. A flow starts with its first event's begin and ends with
/// its second one's end.
///
/// O(events log events); the pieces have about 1 MiB.
void perfetto_proto(const Timeline& timeline, const std::function<void(std::string_view)>& out);

/// The same into a file (".pftrace" by custom), packed if `path` ends in ".gz".
/// ERRORS: those of AtomicFile.
void write_perfetto_proto(const Timeline& timeline, const std::string& path);

}  // namespace lockstep
