#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "base/gzip_file.h"
#include "base/json.h"
#include "trace/timeline.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

std::string quoted(const std::string& text) { return to_line(Json(text)); }

std::vector<std::string> quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) {
    out.push_back(quoted(text));
  }
  return out;
}

/// The numbers of a bar and, on a line each, its arrows' ends: one points into a bar, so that the
/// end lies a nanosecond (Perfetto's step) before the bar's.
class Arrows {
 public:
  explicit Arrows(const Timeline& timeline) : timeline_(timeline) {}

  void write(std::string& text, std::size_t flow) const {
    const auto [from, to] = timeline_.flows[flow];
    const TimelineEvent& a = timeline_.events[static_cast<std::size_t>(from)];
    const TimelineEvent& b = timeline_.events[static_cast<std::size_t>(to)];
    one(text, "s", a, a.begin, flow);
    one(text, "f\",\"bp\":\"e", b, std::max({a.begin, b.begin, b.end - Time::ns(1)}), flow);
  }

 private:
  void one(std::string& text, const char* phase, const TimelineEvent& event, Time when,
           std::size_t flow) const {
    const TimelineTrack& track = timeline_.tracks[static_cast<std::size_t>(event.track)];
    fmt::format_to(std::back_inserter(text),
                   ",\n{{\"ph\":\"{}\",\"name\":\"flow\",\"cat\":\"flow\",\"id\":{},\"pid\":{},"
                   "\"tid\":{},\"ts\":{}}}",
                   phase, flow, timeline_.tracks[static_cast<std::size_t>(track.parent)].number,
                   track.number, microseconds(when));
  }

  const Timeline& timeline_;
};

}  // namespace

void write_chrome_trace(const Timeline& timeline, const std::string& path) {
  GzipFile file(path);
  const std::vector<std::string> names = quoted(timeline.names);
  const std::vector<std::string> kinds = quoted(timeline.kinds);
  const std::vector<std::string> keys = quoted(timeline.keys);
  std::string text = "{\"displayTimeUnit\":\"ns\",";
  if (timeline.ranks > 0) {
    text += fmt::format("\"world_size\":{},", timeline.ranks);  // as Kineto has it
  }
  text += "\"traceEvents\":[";
  const char* separator = "\n";
  for (const TimelineTrack& track : timeline.tracks) {
    if (track.parent < 0) {
      text += fmt::format(R"({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})",
                          separator, track.number, quoted(track.name));
    } else {
      text += fmt::format(
          R"({}{{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
          separator, timeline.tracks[static_cast<std::size_t>(track.parent)].number, track.number,
          quoted(track.name));
    }
    separator = ",\n";
  }
  const auto pass_on = [&] {
    if (text.size() > (1U << 20)) {
      file.write(text);
      text.clear();
    }
  };
  for (const TimelineEvent& event : timeline.events) {
    const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
    fmt::format_to(std::back_inserter(text),
                   R"({}{{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{})",
                   separator, names[static_cast<std::size_t>(event.name)],
                   kinds[static_cast<std::size_t>(event.kind)],
                   timeline.tracks[static_cast<std::size_t>(track.parent)].number, track.number,
                   microseconds(event.begin), microseconds(event.end - event.begin));
    for (std::int32_t i = 0; i < event.arguments; ++i) {
      const TimelineArgument& argument =
          timeline.arguments[static_cast<std::size_t>(event.first_argument + i)];
      fmt::format_to(std::back_inserter(text), "{}{}:{}", i == 0 ? ",\"args\":{" : ",",
                     keys[static_cast<std::size_t>(argument.key)], argument.value);
    }
    text += event.arguments > 0 ? "}}" : "}";
    pass_on();
  }
  const Arrows arrows(timeline);
  for (std::size_t flow = 0; flow < timeline.flows.size(); ++flow) {
    arrows.write(text, flow);
    pass_on();
  }
  text += "\n]}\n";
  file.write(text);
  file.commit();
}

}  // namespace lockstep
