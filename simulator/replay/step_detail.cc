#include "simulator/replay/step_detail.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

constexpr std::int64_t kMostKept = 20'000'000;  // operations, 480 MB
constexpr std::size_t kMostClasses = 256;       // that are shown

bool same_times(const std::vector<OpTiming>& a, const std::vector<OpTiming>& b) {
  return std::ranges::equal(a, b, [](const OpTiming& x, const OpTiming& y) {
    return x.begin == y.begin && x.end == y.end;
  });
}

GroupKind group_of(const RankPrograms& work, const ProgramOp& op) {
  return op.family < 0 ? GroupKind::kPp : work.families[static_cast<std::size_t>(op.family)].kind();
}

/// Collectives that ran while the rank computed. Messages are left out: a receive is posted long
/// before there is anything to move.
Time hidden_of(const Program& program, const std::vector<OpTiming>& timing) {
  struct Edge {
    Time when;
    std::int32_t computes, talks;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < timing.size(); ++i) {
    if (program.ops()[i].comm == CommType::kSendRecv) {
      continue;
    }
    const bool computes = program.ops()[i].comm == CommType::kNone;
    edges.push_back({timing[i].begin, computes, !computes});
    edges.push_back({timing[i].end, -static_cast<std::int32_t>(computes),
                     -static_cast<std::int32_t>(!computes)});
  }
  std::ranges::sort(edges, {}, &Edge::when);
  Time hidden, last;
  std::int32_t computes = 0, talks = 0;
  for (const Edge& edge : edges) {
    if (computes > 0 && talks > 0) {
      hidden += edge.when - last;
    }
    last = edge.when;
    computes += edge.computes;
    talks += edge.talks;
  }
  return hidden;
}

/// "forward 3 layer 7 mlp.in gather" without the microbatch's number, which an event has itself.
std::string without_microbatch(std::string name, std::int32_t microbatch) {
  const std::size_t blank = name.find(' ');
  const std::string number = " " + std::to_string(microbatch) + " ";
  if (microbatch >= 0 && blank != std::string::npos &&
      name.compare(blank, number.size(), number) == 0) {
    name.erase(blank, number.size() - 1);
  }
  return name;
}

/// And without "layer 7" or "chunk 0": what all layers have in common.
std::string without_layer(std::string name) {
  for (const std::string_view word : {" layer ", " chunk "}) {
    const std::size_t begin = name.find(word);
    if (begin == std::string::npos) {
      continue;
    }
    std::size_t end = begin + word.size();
    const std::size_t digits = end;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') {
      ++end;
    }
    if (end > digits && (end == name.size() || name[end] == ' ')) {
      name.erase(begin, end - begin);
    }
  }
  return name;
}

/// Drops the kinds that nothing refers to.
void compact(StepDetail& detail) {
  std::vector<std::int32_t> number(detail.kinds.size(), -1);
  std::vector<StepDetail::Kind> kept;
  const auto take = [&](std::int32_t& kind) {
    std::int32_t& place = number[static_cast<std::size_t>(kind)];
    if (place < 0) {
      place = static_cast<std::int32_t>(kept.size());
      kept.push_back(std::move(detail.kinds[static_cast<std::size_t>(kind)]));
    }
    kind = place;
  };
  for (StepDetail::Event& event : detail.events) {
    take(event.kind);
  }
  for (StepDetail::Piece& piece : detail.critical) {
    take(piece.kind);
  }
  for (StepDetail::Sum& sum : detail.sums) {
    take(sum.kind);
  }
  detail.kinds = std::move(kept);
}

/// Numbers kinds as they come.
class Kinds {
 public:
  explicit Kinds(std::vector<StepDetail::Kind>& all) : all_(all) {}
  std::int32_t number(StepDetail::Kind kind) {
    const auto key =
        std::tuple(kind.name, kind.type, kind.comm, kind.group, kind.bytes.count(), kind.track);
    const auto [place, is_new] = known_.try_emplace(key, static_cast<std::int32_t>(all_.size()));
    if (is_new) {
      all_.push_back(std::move(kind));
    }
    return place->second;
  }

 private:
  std::vector<StepDetail::Kind>& all_;
  std::map<std::tuple<std::string, OpType, CommType, GroupKind, std::int64_t, std::string>,
           std::int32_t>
      known_;
};

/// Neighbours on a line that belong to the same pass of a microbatch become one event.
std::vector<StepDetail::Event> merged(const std::vector<StepDetail::Event>& events,
                                      StepDetail& detail, Kinds& kinds) {
  std::vector<StepDetail::Event> result;
  for (const StepDetail::Event& event : events) {
    if (!result.empty()) {
      StepDetail::Event& last = result.back();
      const StepDetail::Kind& a = detail.kinds[static_cast<std::size_t>(last.kind)];
      const StepDetail::Kind& b = detail.kinds[static_cast<std::size_t>(event.kind)];
      if (last.track == event.track && last.microbatch == event.microbatch &&
          last.chunk == event.chunk && a.type == b.type &&
          (a.comm == CommType::kNone) == (b.comm == CommType::kNone) && a.group == b.group) {
        last.end = std::max(last.end, event.end);
        ++last.merged;
        if (last.merged == 2) {
          last.kind = kinds.number(
              {std::string(name_of(a.type)), a.type, a.comm, a.group, Bytes(0), a.track});
        }
        continue;
      }
    }
    result.push_back(event);
  }
  return result;
}

}  // namespace

StepRecorder::StepRecorder(const RankPrograms& work, const StepFold* final_fold)
    : work_(work),
      slot_(static_cast<std::size_t>(work.ranks()), -1),
      same_as_(static_cast<std::size_t>(work.ranks()), -1) {
  std::int64_t kept = 0;
  const auto keep = [&](std::int32_t rank) {
    const auto ops = std::ssize(work.program(rank).ops());
    if (kept + ops > kMostKept) {
      return false;
    }
    kept += ops;
    slot_[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(rank_of_.size());
    rank_of_.push_back(rank);
    weight_.push_back(1);
    timing_.emplace_back(static_cast<std::size_t>(ops));
    return true;
  };
  if (final_fold != nullptr) {
    for (const std::int32_t rank : final_fold->representative) {
      keep(rank);
    }
    std::ranges::fill(weight_, 0);
    for (std::size_t rank = 0; rank < slot_.size(); ++rank) {
      const std::int32_t first =
          final_fold->representative[static_cast<std::size_t>(final_fold->class_of_rank[rank])];
      same_as_[rank] = slot_[static_cast<std::size_t>(first)];
      if (same_as_[rank] >= 0) {
        ++weight_[static_cast<std::size_t>(same_as_[rank])];
      }
    }
    return;
  }
  // Ranks of all stages before further ones of each, so that what is kept shows every stage.
  std::map<std::int32_t, std::vector<std::int32_t>> by_stage;
  for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
    by_stage[stage_of(rank)].push_back(rank);
  }
  for (std::size_t place = 0, found = 1; found > 0; ++place) {
    found = 0;
    for (const auto& [stage, ranks] : by_stage) {
      if (place < ranks.size() && keep(ranks[place])) {
        ++found;
      }
    }
  }
  same_as_ = slot_;
}

std::int32_t StepRecorder::stage_of(std::int32_t rank) const {
  for (const CommFamily& family : work_.families) {
    if (family.kind() == GroupKind::kPp && family.group_of(rank) >= 0) {
      return family.place_of(rank);
    }
  }
  return -1;
}

std::optional<CriticalPath> StepRecorder::critical() const {
  if (std::ranges::find(same_as_, -1) != same_as_.end()) {
    return std::nullopt;
  }
  return critical_path(work_, timing_, same_as_);
}

std::vector<std::vector<std::int32_t>> StepRecorder::classes() const {
  std::vector<std::int32_t> slots(rank_of_.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::ranges::stable_sort(slots, {}, [&](std::int32_t slot) {
    return std::pair(stage_of(rank_of_[static_cast<std::size_t>(slot)]),
                     rank_of_[static_cast<std::size_t>(slot)]);
  });
  // By program and end first, so that few have to be compared in full.
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::size_t>> alike;
  std::vector<std::vector<std::int32_t>> found;
  for (const std::int32_t slot : slots) {
    const auto s = static_cast<std::size_t>(slot);
    std::int64_t sum = 0;
    for (const OpTiming& timing : timing_[s]) {
      sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) * 31 +
                                      static_cast<std::uint64_t>(timing.end.count_ps()));
    }
    auto& candidates = alike[{work_.program_of_rank[static_cast<std::size_t>(rank_of_[s])], sum}];
    const auto same = std::ranges::find_if(candidates, [&](std::size_t c) {
      return stage_of(rank_of_[static_cast<std::size_t>(found[c].front())]) ==
                 stage_of(rank_of_[s]) &&
             same_times(timing_[static_cast<std::size_t>(found[c].front())], timing_[s]);
    });
    if (same != candidates.end()) {
      found[*same].push_back(slot);
    } else {
      candidates.push_back(found.size());
      found.push_back({slot});
    }
  }
  return found;
}

StepDetail StepRecorder::detail(const Name& op_name, const Name& track_name,
                                const std::optional<CriticalPath>& path,
                                std::size_t most_events) const {
  StepDetail detail;
  std::vector<std::vector<std::int32_t>> found = classes();
  detail.all_classes = std::ssize(found);
  std::vector<std::int32_t> class_of_slot(rank_of_.size(), -1);
  for (std::size_t c = 0; c < found.size(); ++c) {
    for (const std::int32_t slot : found[c]) {
      class_of_slot[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(c);
    }
  }
  Kinds kinds(detail.kinds);
  std::vector<std::vector<std::int32_t>> known(work_.programs.size());  // per program and operation
  const auto kind_of = [&](std::int32_t rank, std::int32_t op) {
    const ProgramOp& what = work_.program(rank).ops()[static_cast<std::size_t>(op)];
    auto& list =
        known[static_cast<std::size_t>(work_.program_of_rank[static_cast<std::size_t>(rank)])];
    list.resize(work_.program(rank).ops().size(), -1);
    std::int32_t& kind = list[static_cast<std::size_t>(op)];
    if (kind < 0) {
      kind = kinds.number({without_microbatch(op_name(rank, op), what.microbatch), what.type,
                           what.comm,
                           what.comm == CommType::kNone ? GroupKind::kTp : group_of(work_, what),
                           what.bytes, track_name(rank, op)});
    }
    return kind;
  };

  // Which classes are shown: of each stage in turn, as long as there is room.
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::map<std::int32_t, std::int32_t> seen;
  std::vector<std::int32_t> place(found.size());
  for (std::size_t c = 0; c < found.size(); ++c) {
    place[c] = seen[stage_of(rank_of_[static_cast<std::size_t>(found[c].front())])]++;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t c) { return place[c]; });

  struct Drawn {
    StepDetail::RankClass rank_class;
    std::map<std::pair<std::int32_t, std::string>, std::vector<StepDetail::Event>> lines;
  };
  std::map<std::size_t, Drawn> drawn;
  std::map<std::int32_t, StepDetail::Sum> sums;
  std::map<std::int32_t, std::int32_t> sum_of_kind;
  std::size_t events = 0;
  for (const std::size_t c : order) {
    const std::int32_t slot = found[c].front();
    const std::int32_t rank = rank_of_[static_cast<std::size_t>(slot)];
    const Program& program = work_.program(rank);
    const std::vector<OpTiming>& timing = timing_[static_cast<std::size_t>(slot)];
    if (drawn.size() >= kMostClasses || (place[c] > 0 && events >= most_events)) {
      break;
    }
    Drawn one;
    one.rank_class.first = rank;
    one.rank_class.ranks = 0;
    for (const std::int32_t each : found[c]) {
      one.rank_class.ranks += weight_[static_cast<std::size_t>(each)];
    }
    one.rank_class.stage = stage_of(rank);
    one.rank_class.exposure = exposure_of(program, work_.families, timing);
    one.rank_class.hidden = hidden_of(program, timing);
    for (std::size_t i = 0; i < timing.size(); ++i) {
      one.rank_class.end = std::max(one.rank_class.end, timing[i].end);
      if (timing[i].end == timing[i].begin) {
        continue;
      }
      const ProgramOp& what = program.ops()[i];
      const auto op = static_cast<std::int32_t>(i);
      const std::int32_t kind = kind_of(rank, op);
      one.lines[{what.stream, detail.kinds[static_cast<std::size_t>(kind)].track}].push_back(
          {0, kind, what.microbatch, what.chunk, 1, timing[i].begin, timing[i].end});
      const StepDetail::Kind& drawn_as = detail.kinds[static_cast<std::size_t>(kind)];
      const auto [alike, is_new] = sum_of_kind.try_emplace(kind, -1);
      if (is_new) {
        alike->second = kinds.number({without_layer(drawn_as.name), drawn_as.type, drawn_as.comm,
                                      drawn_as.group, Bytes(0), ""});
      }
      StepDetail::Sum& sum = sums[alike->second];
      sum.kind = alike->second;
      ++sum.count;
      sum.time += timing[i].end - timing[i].begin;
      ++events;
    }
    drawn.emplace(c, std::move(one));
  }
  detail.merged = events > most_events;

  std::vector<std::int32_t> shown(found.size(), -1);
  for (auto& [c, one] : drawn) {
    shown[c] = static_cast<std::int32_t>(detail.classes.size());
    for (auto& [line, list] : one.lines) {
      const auto track = static_cast<std::int32_t>(detail.tracks.size());
      detail.tracks.push_back({shown[c], line.second});
      std::ranges::stable_sort(list, {}, &StepDetail::Event::begin);
      for (StepDetail::Event& event : list) {
        event.track = track;
      }
      if (detail.merged) {
        list = merged(list, detail, kinds);
      }
      detail.events.insert(detail.events.end(), list.begin(), list.end());
    }
    detail.classes.push_back(one.rank_class);
  }
  for (const auto& [kind, sum] : sums) {
    detail.sums.push_back(sum);
  }
  std::ranges::stable_sort(detail.sums, std::ranges::greater(), &StepDetail::Sum::time);

  if (path) {
    for (const CriticalPiece& piece : path->pieces) {
      const std::int32_t slot = same_as_[static_cast<std::size_t>(piece.rank)];
      const std::int32_t rank_class =
          shown[static_cast<std::size_t>(class_of_slot[static_cast<std::size_t>(slot)])];
      const std::int32_t kind = kind_of(piece.rank, piece.op);
      if (!detail.critical.empty() && detail.merged) {
        StepDetail::Piece& last = detail.critical.back();
        if (last.rank_class == rank_class && last.end == piece.begin &&
            detail.kinds[static_cast<std::size_t>(last.kind)].track ==
                detail.kinds[static_cast<std::size_t>(kind)].track) {
          last.end = piece.end;
          continue;
        }
      }
      detail.critical.push_back({rank_class, kind, piece.begin, piece.end});
    }
  }
  compact(detail);
  return detail;
}

}  // namespace lockstep
