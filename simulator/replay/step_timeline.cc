#include "simulator/replay/step_timeline.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "workloads/comm.h"

namespace lockstep {

StepTimeline::StepTimeline(const RankPrograms& work, OpName op_name, OpName track_name)
    : work_(work), op_name_(std::move(op_name)), track_name_(std::move(track_name)) {
  timeline_.kinds.emplace_back("compute");
  for (int i = 1; i <= static_cast<int>(CommType::kBarrier); ++i) {
    timeline_.kinds.emplace_back(name_of(static_cast<CommType>(i)));
  }
}

void StepTimeline::record(std::int32_t rank, std::int32_t op, const OpTiming& timing) {
  if (timing.end == timing.begin) {
    return;
  }
  const ProgramOp& what = work_.program(rank).ops()[static_cast<std::size_t>(op)];
  TimelineEvent event;
  event.track = lines_
                    .try_emplace({rank, what.stream, track_name_(rank, op)},
                                 static_cast<std::int32_t>(lines_.size()))
                    .first->second;
  event.name = number(names_, timeline_.names, op_name_(rank, op));
  event.kind = static_cast<std::int32_t>(what.comm);
  event.begin = timing.begin;
  event.end = timing.end;
  event.first_argument = std::ssize(timeline_.arguments);
  if (what.bytes > Bytes(0)) {
    add_argument("bytes", what.bytes.count());
  }
  if (what.microbatch >= 0) {
    add_argument("microbatch", what.microbatch);
  }
  if (what.chunk >= 0) {
    add_argument("chunk", what.chunk);
  }
  event.arguments =
      static_cast<std::int32_t>(std::ssize(timeline_.arguments) - event.first_argument);
  if (what.comm != CommType::kNone) {
    members_.push_back({together(rank, what), std::ssize(timeline_.events), what.send});
  }
  timeline_.events.push_back(event);
}

Timeline StepTimeline::take() {
  std::vector<std::int32_t> track_of_line(lines_.size());
  std::int32_t rank = -1, above = -1, thread = 0;
  for (const auto& [line, number] : lines_) {
    if (line.rank != rank) {
      rank = line.rank;
      above = static_cast<std::int32_t>(timeline_.tracks.size());
      thread = 0;
      timeline_.tracks.push_back({fmt::format("rank {}", rank), -1, rank});
    }
    track_of_line[static_cast<std::size_t>(number)] =
        static_cast<std::int32_t>(timeline_.tracks.size());
    timeline_.tracks.push_back({line.name, above, thread++});
  }
  for (TimelineEvent& event : timeline_.events) {
    event.track = track_of_line[static_cast<std::size_t>(event.track)];
  }
  add_flows();
  return std::move(timeline_);
}

StepTimeline::Together StepTimeline::together(std::int32_t rank, const ProgramOp& op) const {
  if (op.family < 0) {
    return {-1, op.send ? rank : op.peer, op.send ? op.peer : rank, op.sequence};
  }
  const CommFamily& family = work_.families[static_cast<std::size_t>(op.family)];
  const std::int32_t group = family.group_of(rank);
  if (op.peer < 0) {
    return {op.family, group, -1, op.sequence};
  }
  const auto& members = family.groups()[static_cast<std::size_t>(group)];
  const std::int32_t peer =
      members[static_cast<std::size_t>(family.place_of(rank) + op.peer) % members.size()];
  return {op.family, op.send ? rank : peer, op.send ? peer : rank, op.sequence};
}

std::int32_t StepTimeline::number(std::map<std::string, std::int32_t>& known,
                                  std::vector<std::string>& all, const std::string& text) {
  const auto [place, is_new] = known.try_emplace(text, static_cast<std::int32_t>(all.size()));
  if (is_new) {
    all.push_back(text);
  }
  return place->second;
}

void StepTimeline::add_argument(const char* key, std::int64_t value) {
  timeline_.arguments.push_back({number(keys_, timeline_.keys, key), value});
}

void StepTimeline::add_flows() {
  const auto begin = [&](const Member& member) {
    return timeline_.events[static_cast<std::size_t>(member.event)].begin;
  };
  std::ranges::sort(members_, {},
                    [](const Member& member) { return std::tie(member.key, member.event); });
  for (std::size_t first = 0, end = 0; first < members_.size(); first = end) {
    while (end < members_.size() && members_[end].key == members_[first].key) {
      ++end;
    }
    // A message's sender; of a collective the one that came last.
    std::size_t source = first;
    for (std::size_t i = first + 1; i < end; ++i) {
      if (members_[i].sends != members_[source].sends
              ? members_[i].sends
              : begin(members_[i]) > begin(members_[source])) {
        source = i;
      }
    }
    for (std::size_t i = first; i < end; ++i) {
      if (i != source) {
        timeline_.flows.push_back({members_[source].event, members_[i].event});
      }
    }
  }
}

}  // namespace lockstep
