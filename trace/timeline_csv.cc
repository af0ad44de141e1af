#include <iterator>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/gzip_file.h"
#include "trace/timeline.h"

namespace lockstep {
namespace {

std::string seconds(Time time) {
  return fmt::format("{}.{:012}", time.count_ps() / 1'000'000'000'000,
                     time.count_ps() % 1'000'000'000'000);
}

}  // namespace

void write_timeline_csv(const Timeline& timeline, const std::string& path) {
  GzipFile file(path);
  std::string text = "rank,track,kind,name,begin_s,end_s,bytes\n";
  for (const TimelineEvent& event : timeline.events) {
    const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
    const TimelineTrack& above = timeline.tracks[static_cast<std::size_t>(track.parent)];
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < event.arguments; ++i) {
      const TimelineArgument& argument =
          timeline.arguments[static_cast<std::size_t>(event.first_argument + i)];
      if (timeline.keys[static_cast<std::size_t>(argument.key)] == "bytes") {
        bytes = argument.value;
      }
    }
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", above.number,
                   csv_field(track.name),
                   csv_field(timeline.kinds[static_cast<std::size_t>(event.kind)]),
                   csv_field(timeline.names[static_cast<std::size_t>(event.name)]),
                   seconds(event.begin), seconds(event.end), bytes);
    if (text.size() > (1U << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text);
  file.commit();
}

}  // namespace lockstep
