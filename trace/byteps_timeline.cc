#include "trace/byteps_timeline.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

constexpr std::int64_t kKeysPerTensor = 65536;

/// A collective's queue type; empty: it is none of gradients or parameters.
std::string_view queue_of(std::string_view kind) {
  if (kind == "reducescatter" || kind == "allreduce") {
    return "REDUCE";
  }
  return kind == "allgather" ? "BROADCAST" : "";
}

std::string quoted(const std::string& text) { return to_line(Json(text)); }

bool is_of(const Timeline& timeline, const TimelineEvent& event, std::int32_t rank) {
  const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
  return track.parent >= 0 && track.name.starts_with("dp") &&
         timeline.tracks[static_cast<std::size_t>(track.parent)].number == rank;
}

}  // namespace

std::string byteps_comm_json(std::span<const StepPicture> steps, std::int32_t rank) {
  std::map<std::string, std::int64_t> tensors;
  std::string events;
  const auto add = [&](const std::string& tensor, const std::string& name,
                       const std::string& thread, const TimelineEvent& event, Time offset) {
    events += fmt::format(
        R"({}{{"ph":"X","args":{{"name":{}}},"pid":{},"name":{},"ts":{},"dur":{},"tid":{},)"
        R"("cat":"Comm"}})",
        events.empty() ? "\n" : ",\n", tensor, tensor, name, microseconds(offset + event.begin),
        microseconds(event.end - event.begin), quoted(thread));
  };
  bool known = false;
  for (const StepPicture& step : steps) {
    const Timeline& timeline = step.timeline;
    for (const TimelineTrack& track : timeline.tracks) {
      known = known || (track.parent < 0 && track.number == rank);
    }
    const auto queue_type = [&](const TimelineEvent& event) {
      return queue_of(timeline.kinds[static_cast<std::size_t>(event.kind)]);
    };
    std::vector<const TimelineEvent*> taken;
    std::map<std::pair<std::int32_t, std::string_view>, int> count, so_far;  // by name and queue
    for (const TimelineEvent& event : timeline.events) {
      if (!queue_type(event).empty() && is_of(timeline, event, rank)) {
        taken.push_back(&event);
        ++count[{event.name, queue_type(event)}];
      }
    }
    std::ranges::stable_sort(taken, {}, &TimelineEvent::begin);
    for (const TimelineEvent* each : taken) {
      const TimelineEvent& event = *each;
      const std::string_view queue = queue_type(event);
      const std::pair bucket(event.name, queue);
      const std::string tensor = "Comm.byteps." +
                                 timeline.names[static_cast<std::size_t>(event.name)] +
                                 (count[bucket] > 1 ? fmt::format(".{}", so_far[bucket]++) : "");
      const std::int64_t number =
          tensors.try_emplace(tensor, static_cast<std::int64_t>(tensors.size())).first->second;
      add(quoted(tensor), quoted(tensor), "total", event, step.begin);
      add(quoted(tensor), quoted(fmt::format("{}.{}", tensor, queue)),
          std::to_string(number * kKeysPerTensor), event, step.begin);
    }
  }
  return known ? fmt::format("{{\"traceEvents\":[{}\n],\n\"displayTimeUnit\":\"ms\"}}\n", events)
               : std::string();
}

}  // namespace lockstep
