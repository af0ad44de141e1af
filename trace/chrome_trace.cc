#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/gzip_file.h"
#include "base/json.h"
#include "trace/timeline.h"

namespace lockstep {
namespace {

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    out.push_back(quoted(text));
  }
  return out;
}

std::string microseconds(Time time) {
  return fmt::format("{}.{:06}", time.count_ps() / 1'000'000, time.count_ps() % 1'000'000);
}

}  // namespace

void write_chrome_trace(const Timeline& timeline, const std::string& path) {
  GzipFile file(path);
  const std::vector<std::string> names = quoted(timeline.names);
  const std::vector<std::string> kinds = quoted(timeline.kinds);
  const std::vector<std::string> tracks = quoted(timeline.tracks);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* separator = "\n";
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (const TimelineEvent& event : timeline.events) {
    seen.insert({event.rank, event.track});
  }
  std::int32_t last_rank = -1;
  for (const auto& [rank, track] : seen) {
    if (rank != std::exchange(last_rank, rank)) {
      text += fmt::format(
          R"({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", separator,
          rank, rank);
      separator = ",\n";
    }
    text +=
        fmt::format(R"({}{{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                    separator, rank, track, tracks[static_cast<std::size_t>(track)]);
  }
  for (const TimelineEvent& event : timeline.events) {
    fmt::format_to(std::back_inserter(text),
                   R"({}{{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{})",
                   separator, names[static_cast<std::size_t>(event.name)],
                   kinds[static_cast<std::size_t>(event.kind)], event.rank, event.track,
                   microseconds(event.begin), microseconds(event.end - event.begin));
    separator = ",\n";
    if (event.bytes > Bytes(0)) {
      fmt::format_to(std::back_inserter(text), R"(,"args":{{"bytes":{}}}}})", event.bytes.count());
    } else {
      text += '}';
    }
    if (text.size() > (1U << 20)) {
      file.write(text);
      text.clear();
    }
  }
  text += "\n]}\n";
  file.write(text);
  file.commit();
}

}  // namespace lockstep
