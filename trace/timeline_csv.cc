#include <iterator>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/gzip_file.h"
#include "trace/timeline.h"
#include "trace/timeline_log.h"

namespace lockstep {
namespace {

std::string seconds(Time time) {
  return fmt::format("{}.{:012}", time.count_ps() / 1'000'000'000'000,
                     time.count_ps() % 1'000'000'000'000);
}

}  // namespace

void write_timeline_csv(const Timeline& timeline, const std::string& path) {
  GzipFile file(path);
  std::string text = "rank,track,kind,name,begin_s,end_s,bytes,together\n";
  const std::vector<std::int64_t> joined = joined_bars(timeline);
  for (std::size_t i = 0; i < timeline.events.size(); ++i) {
    const TimelineEvent& event = timeline.events[i];
    const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
    const TimelineTrack& above = timeline.tracks[static_cast<std::size_t>(track.parent)];
    std::int64_t bytes = 0;
    for (std::int32_t k = 0; k < event.arguments; ++k) {
      const TimelineArgument& argument =
          timeline.arguments[static_cast<std::size_t>(event.first_argument + k)];
      if (timeline.keys[static_cast<std::size_t>(argument.key)] == "bytes") {
        bytes = argument.value;
      }
    }
    fmt::format_to(
        std::back_inserter(text), "{},{},{},{},{},{},{},{}\n", above.number, csv_field(track.name),
        csv_field(timeline.kinds[static_cast<std::size_t>(event.kind)]),
        csv_field(timeline.names[static_cast<std::size_t>(event.name)]), seconds(event.begin),
        seconds(event.end), bytes, joined[i] < 0 ? "" : std::to_string(joined[i]));
    if (text.size() > (1U << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text);
  file.commit();
}

}  // namespace lockstep
