#include "report/detail_json.h"

#include <algorithm>
#include <cmath>

#include "report/json_time.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {
namespace {

/// The unit of times: a power of ten of which the step has a few millions, a picosecond at least.
std::int64_t tick_of(const StepDetail& detail) {
  std::int64_t end = 1;
  for (const StepDetail::Event& event : detail.events) {
    end = std::max(end, event.end.count_ps());
  }
  std::int64_t tick = 1;
  while (end / tick > 10'000'000) {
    tick *= 10;
  }
  return tick;
}

Json classes_json(const StepDetail& detail, const std::vector<JobResult>& jobs) {
  Json classes = Json::array();
  for (const StepDetail::RankClass& each : detail.classes) {
    Json groups = Json::object();
    for (std::size_t i = 0; i < each.exposure.by_group.size(); ++i) {
      if (each.exposure.by_group[i] > Time()) {
        groups[std::string(name_of(static_cast<GroupKind>(i))) + "_s"] =
            seconds(each.exposure.by_group[i]);
      }
    }
    Json json = {{"rank", each.first}, {"ranks", each.ranks}};
    if (each.stage >= 0) {
      json["stage"] = each.stage;
    }
    if (jobs.size() > 1) {
      const auto after = std::ranges::upper_bound(jobs, each.first, {}, &JobResult::first_rank);
      json["job"] = after - jobs.begin() - 1;
    }
    json["compute_s"] = seconds(each.exposure.compute);
    json["hidden_s"] = seconds(each.hidden);
    json["bubble_s"] = seconds(each.exposure.bubble);
    json["exposed_by_group"] = std::move(groups);
    json["idle_s"] = seconds(each.exposure.idle);
    json["end_s"] = seconds(each.end);
    classes.push_back(std::move(json));
  }
  return classes;
}

Json kinds_json(const StepDetail& detail) {
  Json kinds = Json::array();
  for (const StepDetail::Kind& kind : detail.kinds) {
    Json json = {{"name", kind.name}, {"type", name_of(kind.type)}, {"track", kind.track}};
    if (kind.comm != CommType::kNone) {
      json["comm"] = name_of(kind.comm);
      json["group"] = name_of(kind.group);
      json["bytes"] = kind.bytes.count();
    }
    kinds.push_back(std::move(json));
  }
  return kinds;
}

/// Columns of whole numbers: short, and quick to read.
Json events_json(const StepDetail& detail, std::int64_t tick) {
  Json track = Json::array(), op = Json::array(), begin = Json::array(), length = Json::array(),
       microbatch = Json::array(), chunk = Json::array(), merged = Json::array();
  std::int32_t last_track = -1;
  std::int64_t last = 0;
  for (const StepDetail::Event& event : detail.events) {
    const std::int64_t from = event.begin.count_ps() / tick, to = event.end.count_ps() / tick;
    track.push_back(event.track);
    op.push_back(event.kind);
    begin.push_back(event.track == last_track ? from - last : from);
    length.push_back(to - from);
    microbatch.push_back(event.microbatch);
    chunk.push_back(event.chunk);
    merged.push_back(event.merged);
    last_track = event.track;
    last = from;
  }
  Json json = {{"track", std::move(track)},           {"op", std::move(op)},
               {"begin", std::move(begin)},           {"length", std::move(length)},
               {"microbatch", std::move(microbatch)}, {"chunk", std::move(chunk)}};
  if (detail.merged) {
    json["merged"] = std::move(merged);
  }
  return json;
}

Json critical_json(const StepDetail& detail, std::int64_t tick) {
  Json rank_class = Json::array(), op = Json::array(), begin = Json::array(),
       length = Json::array();
  std::int64_t last = 0;
  for (const StepDetail::Piece& piece : detail.critical) {
    const std::int64_t from = piece.begin.count_ps() / tick;
    rank_class.push_back(piece.rank_class);
    op.push_back(piece.kind);
    begin.push_back(from - last);
    length.push_back(piece.end.count_ps() / tick - from);
    last = from;
  }
  return {{"class", std::move(rank_class)},
          {"op", std::move(op)},
          {"begin", std::move(begin)},
          {"length", std::move(length)}};
}

Json operators_json(const StepDetail& detail) {
  constexpr std::size_t kMost = 1000;
  Json operators = Json::array();
  for (std::size_t i = 0; i < std::min(kMost, detail.sums.size()); ++i) {
    const StepDetail::Sum& sum = detail.sums[i];
    const StepDetail::Kind& kind = detail.kinds[static_cast<std::size_t>(sum.kind)];
    Json json = {{"name", kind.name}, {"type", name_of(kind.type)}};
    if (kind.comm != CommType::kNone) {
      json["comm"] = name_of(kind.comm);
      json["group"] = name_of(kind.group);
    }
    json["count"] = sum.count;
    json["time_s"] = seconds(sum.time);
    operators.push_back(std::move(json));
  }
  return operators;
}

}  // namespace

Json detail_json(const StepDetail& detail, const std::vector<JobResult>& jobs) {
  const std::int64_t tick = tick_of(detail);
  Json tracks = Json::array();
  for (const StepDetail::Track& track : detail.tracks) {
    tracks.push_back({{"class", track.rank_class}, {"name", track.name}});
  }
  Json json = {{"tick_s", static_cast<double>(tick) / 1e12},
               {"classes", classes_json(detail, jobs)},
               {"classes_total", detail.all_classes},
               {"tracks", std::move(tracks)},
               {"ops", kinds_json(detail)},
               {"events", events_json(detail, tick)},
               {"merged_events", detail.merged},
               {"operators", operators_json(detail)}};
  if (!detail.critical.empty()) {
    json["critical"] = critical_json(detail, tick);
  }
  return json;
}

}  // namespace lockstep
