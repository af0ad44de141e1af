#include "trace/timeline_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::size_t kLongestName = 200;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::vector<std::int64_t> joined_bars(const Timeline& timeline) {
  std::vector<bool> communicates;
  for (const std::string& kind : timeline.kinds) {
    communicates.push_back(comm_type_named(kind).value_or(CommType::kNone) != CommType::kNone);
  }
  const auto is_communication = [&](std::int64_t event) {
    return communicates[at(timeline.events[at(event)].kind)];
  };
  std::vector<std::int64_t> of(timeline.events.size(), -1);
  std::int64_t next = 0;
  for (const TimelineFlow& flow : timeline.flows) {
    if (!is_communication(flow.from) || !is_communication(flow.to)) {
      continue;
    }
    std::int64_t& from = of[at(flow.from)];
    if (from < 0) {
      from = of[at(flow.to)] >= 0 ? of[at(flow.to)] : next++;
    }
    of[at(flow.to)] = from;
  }
  return of;
}

void add_to_log(const Timeline& timeline, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  std::vector<OpRow> ops;
  ops.reserve(timeline.events.size());
  Time first = Time::max();
  for (const TimelineEvent& event : timeline.events) {
    first = std::min(first, event.begin);
  }
  for (const TimelineEvent& event : timeline.events) {
    const TimelineTrack& track = timeline.tracks[at(event.track)];
    OpRow& op = ops.emplace_back();
    op.rank = timeline.tracks[at(track.parent)].number;
    op.stream = track.number;
    op.name = names.index(std::string_view(timeline.names[at(event.name)]).substr(0, kLongestName));
    op.op = comm_type_named(timeline.kinds[at(event.kind)]).value_or(CommType::kNone);
    if (op.op != CommType::kNone) {
      op.kind = OpKind::kCommunication;
      op.group = groups.index(track.name);
    }
    for (std::int32_t i = 0; i < event.arguments; ++i) {
      const TimelineArgument& argument = timeline.arguments[at(event.first_argument + i)];
      if (op.op != CommType::kNone && timeline.keys[at(argument.key)] == "bytes" &&
          argument.value > 0) {
        op.bytes = argument.value;
      }
    }
    op.begin_s = (event.begin - first).seconds();
    op.duration_s = (event.end - event.begin).seconds();
  }
  const std::vector<std::int64_t> occurrence = joined_bars(timeline);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].occurrence = occurrence[i];
  }
  std::ranges::stable_sort(ops, {}, &OpRow::begin_s);
  log.members.resize(log.groups.size());
  log.ops = std::move(ops);
  log.facts["events"] = std::to_string(timeline.events.size());
  log.facts["begin_s"] = fmt::format("{:.6f}", first == Time::max() ? 0.0 : first.seconds());
  if (timeline.ranks > 0) {
    log.facts["world_size"] = std::to_string(timeline.ranks);
  }
}

}  // namespace lockstep
