#include "simulator/replay/step_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

struct Span {
  Time begin = Time::max(), end;
  Bytes bytes;
  std::int32_t family = -1;
  Time computed;     // time in which the rank computes
  Time computed_to;  // and up to when that is counted
  void cover(Time from, Time to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  /// Operations come in the order of their ends.
  void compute(Time from, Time to) {
    from = std::max(from, computed_to);
    if (to > from) {
      computed += to - from;
      computed_to = to;
    }
  }
};

/// Each rank's place in its group of a family, 0 where there is no such family; and the size.
std::vector<std::int32_t> places(const OpTable& table, std::string_view name, std::int64_t ranks,
                                 std::int32_t& size) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(ranks), 0);
  size = 1;
  for (const GroupFamily& family : table.groups) {
    if (family.name != name) {
      continue;
    }
    for (const std::vector<std::int32_t>& group : family.members) {
      size = std::max(size, static_cast<std::int32_t>(group.size()));
      for (std::size_t i = 0; i < group.size(); ++i) {
        result[static_cast<std::size_t>(group[i])] = static_cast<std::int32_t>(i);
      }
    }
  }
  return result;
}

/// Each rank's first of its group of a family, itself where there is no such family.
std::vector<std::int32_t> firsts(const OpTable& table, std::string_view name, std::int64_t ranks) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(ranks));
  std::iota(result.begin(), result.end(), 0);
  for (const GroupFamily& family : table.groups) {
    for (const std::vector<std::int32_t>& group : family.members) {
      for (const std::int32_t rank : group) {
        if (family.name == name) {
          result[static_cast<std::size_t>(rank)] = group.front();
        }
      }
    }
  }
  return result;
}

/// One row for each (type, chunk, microbatch).
using Rows = std::map<std::tuple<TraceOp, std::int32_t, std::int32_t>, Span>;

/// -1 where there is none.
template <class Key>
float seconds_of(const std::map<Key, Time>& times, const Key& key) {
  const auto found = times.find(key);
  return found == times.end() ? -1.0F : static_cast<float>(found->second.seconds());
}

/// Two passes take turns, operator by operator, so that both have to be there: they begin when the
/// later one's message is, and each takes what both compute.
void take_turns(Span& first, Span& second, Time there) {
  first.begin = std::max(first.begin, std::min(there, first.end));
  second.begin = first.begin;
  const Time both = first.computed + second.computed;
  for (Span* pass : {&first, &second}) {
    pass->computed = std::min(both, pass->end - pass->begin);
  }
}

/// A pass that waits for its turn on the worker, not to be launched, begins when the wait does:
/// behind weights' gradients that have no row, when the pass before them ends; but not before its
/// message is there. For passes that take turns see take_turns().
/// With `gathers` all passes but the first do so: they wait for the parameters they begin with.
void begin_with_the_wait(Rows& rows, const std::vector<Span>& weights, bool gathers) {
  std::vector<std::pair<Rows::key_type, Span*>> passes;
  for (auto& [key, span] : rows) {
    if (is_compute(std::get<0>(key))) {
      passes.emplace_back(key, &span);
    }
  }
  std::ranges::stable_sort(passes, {}, [](const auto& pass) { return pass.second->begin; });
  Time ended;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    Span* const pass = passes[i].second;
    const auto& [type, chunk, microbatch] = passes[i].first;
    const auto message = type == TraceOp::kWeightCompute
                             ? rows.end()
                             : rows.find({type == TraceOp::kForwardCompute ? TraceOp::kForwardRecv
                                                                           : TraceOp::kBackwardRecv,
                                          chunk, microbatch});
    const Time there = message == rows.end() ? Time() : message->second.end;
    const bool turns = i > 0 && pass->begin < passes[i - 1].second->end;
    if (turns) {
      take_turns(*passes[i - 1].second, *pass, there);
      ended = std::max(ended, pass->end);
      continue;
    }
    const Time from = std::max(ended, there);
    bool behind = false;
    for (const Span& each : weights) {
      if (each.end > from && each.end <= pass->begin) {
        behind = true;
        pass->computed += std::min(each.computed, each.end - from);
      }
    }
    if (behind || (gathers && i > 0)) {
      pass->begin = std::min(pass->begin, from);
    }
    ended = std::max(ended, pass->end);
  }
}

/// Of a pass, or of its transfers with peers.
PassKey pass_key(TraceOp type, std::int32_t chunk, std::int32_t microbatch) {
  const TraceOp pass = pass_of(type).compute;
  return {pass == TraceOp::kForwardCompute    ? OpType::kForward
          : pass == TraceOp::kBackwardCompute ? OpType::kBackward
                                              : OpType::kWeightGradient,
          chunk, microbatch};
}

std::optional<TraceOp> row_type(OpType type) {
  switch (type) {
    case OpType::kForward:
      return TraceOp::kForwardCompute;
    case OpType::kBackward:
      return TraceOp::kBackwardCompute;
    case OpType::kWeightGradient:
      return TraceOp::kWeightCompute;
    case OpType::kForwardSend:
      return TraceOp::kForwardSend;
    case OpType::kForwardReceive:
      return TraceOp::kForwardRecv;
    case OpType::kBackwardSend:
      return TraceOp::kBackwardSend;
    case OpType::kBackwardReceive:
      return TraceOp::kBackwardRecv;
    case OpType::kGatherParameters:
      return TraceOp::kParamsAllGather;
    case OpType::kReduceGradients:
      return TraceOp::kGradsReduceScatter;
    case OpType::kTiedEmbedding:
      return TraceOp::kEmbeddingGradsAllReduce;
    case OpType::kReplicatedGradients:
      return TraceOp::kLayernormGradsAllReduce;
    case OpType::kClip:
      return TraceOp::kOptimizerClip;
    case OpType::kOptimizer:
      return TraceOp::kOptimizer;
    default:
      return std::nullopt;
  }
}

}  // namespace

StepTrace::StepTrace(const OpTable& table, const Parallelism& parallel, TraceWorkers recorded)
    : worker_(static_cast<std::size_t>(parallel.gpus), -1) {
  bool known = false;
  for (const OpProgram& program : table.programs) {
    for (const Op& op : program.ops) {
      both_ways_ = both_ways_ || (op.type == OpType::kForwardSend && op.peer == -1);
      known = known || op.type != OpType::kOther;
      chunks_ = std::max(chunks_, op.chunk + 1);
      const bool weights = op.type == OpType::kWeightGradient;
      splits_ = splits_ || weights;
      weights_meet_ = weights_meet_ || (weights && op.comm != CommType::kNone);
    }
  }
  if (!known) {
    throw Error("the workload's operations have no types, which the columns of a trace need")
        .hint("a trace of this step can be written as .json or .json.gz");
  }
  const std::vector<std::int32_t> tp = places(table, "tp", parallel.gpus, tp_);
  const std::vector<std::int32_t> cp = places(table, "cp", parallel.gpus, cp_);
  std::int32_t experts = 1;
  const std::vector<std::int32_t> ep = places(table, "ep", parallel.gpus, experts);
  const std::vector<std::int32_t> stage = places(table, "pp", parallel.gpus, stages_);
  const std::vector<std::int32_t> tp_first = firsts(table, "tp", parallel.gpus);
  const std::vector<std::int32_t> cp_first = firsts(table, "cp", parallel.gpus);
  const bool all = recorded == TraceWorkers::kAll;
  weight_rows_ = splits_ && all;
  // The first of the groups have the dp_ranks in their order, the others that of their first.
  std::vector<std::int32_t> next(static_cast<std::size_t>(stages_), 0);
  std::vector<std::int32_t> dp_rank(worker_.size(), 0);
  for (std::size_t rank = 0; rank < worker_.size(); ++rank) {
    if (tp[rank] == 0 && cp[rank] == 0) {
      dp_rank[rank] = next[static_cast<std::size_t>(stage[rank])]++;
    }
  }
  for (std::size_t rank = 0; rank < worker_.size(); ++rank) {
    if (all || (tp[rank] == 0 && cp[rank] == 0)) {
      const auto first =
          static_cast<std::size_t>(cp_first[static_cast<std::size_t>(tp_first[rank])]);
      worker_[rank] = static_cast<std::int32_t>(workers_.size());
      workers_.push_back({static_cast<std::int32_t>(rank), dp_rank[first], stage[rank], tp[rank],
                          cp[rank], ep[rank]});
    }
  }
  dp_ = next.front();
  gathers_in_passes_ = all ? gathers_in_passes(table) : 0;
  peers_ = all && (tp_ * cp_ > 1 || experts > 1 || gathers_in_passes_ > 0);
  pure_passes_ = peers_ || tp_ * cp_ * experts == 1;
  entries_.resize(workers_.size());
  std::vector<const OpProgram*> programs(worker_.size(), nullptr);
  for (const OpProgram& program : table.programs) {
    for (const RankRange& range : program.ranks) {
      for (std::int32_t rank = range.first; rank < range.end; rank += range.stride) {
        programs[static_cast<std::size_t>(rank)] = &program;
      }
    }
  }
  for (Worker& worker : workers_) {
    worker.program = programs[static_cast<std::size_t>(worker.rank)];
  }
  for (const GroupFamily& family : table.groups) {
    Family& last = families_.emplace_back();
    last.name = family.name;
    last.group.assign(worker_.size(), -1);
    for (std::size_t group = 0; group < family.members.size(); ++group) {
      for (const std::int32_t rank : family.members[group]) {
        last.group[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(group);
        last.within_stages = last.within_stages &&
                             stage[static_cast<std::size_t>(rank)] ==
                                 stage[static_cast<std::size_t>(family.members[group].front())];
      }
    }
  }
}

/// See JobMeta: by the largest groups that gather; 0 where those are not dp_ranks in a row.
std::int64_t StepTrace::gathers_in_passes(const OpTable& table) const {
  const GroupFamily* largest = nullptr;
  for (const OpProgram& program : table.programs) {
    for (const Op& op : program.ops) {
      if (op.type == OpType::kGatherParameters && op.microbatch >= 0 && op.group >= 0) {
        const GroupFamily& family = table.groups[static_cast<std::size_t>(op.group)];
        largest =
            largest == nullptr || family.members.front().size() > largest->members.front().size()
                ? &family
                : largest;
      }
    }
  }
  if (largest == nullptr) {
    return 0;
  }
  const std::int64_t ranks = std::ssize(largest->members.front()) / cp_;
  const auto block = [&](std::int32_t rank) {
    const std::int32_t worker = worker_[static_cast<std::size_t>(rank)];
    return workers_[static_cast<std::size_t>(worker)].dp_rank / ranks;
  };
  const bool in_a_row =
      ranks > 0 &&
      std::ranges::all_of(largest->members, [&](const std::vector<std::int32_t>& group) {
        return std::ranges::all_of(
            group, [&](std::int32_t rank) { return block(rank) == block(group.front()); });
      });
  return in_a_row ? ranks : 0;
}

void StepTrace::interfere(
    const Interference& interference,
    std::function<std::int32_t(std::int32_t rank, const ProgramOp&)> channels) {
  interference_ = interference;
  channels_ = std::move(channels);
}

void StepTrace::record(std::int32_t rank, std::int32_t index, const ProgramOp& op,
                       const OpTiming& timing) {
  if (op.type != OpType::kOther) {
    const bool meets = op.comm != CommType::kNone && op.comm != CommType::kSendRecv;
    const std::int32_t taken = !meets || !interference_.any()   ? 0
                               : interference_.measured.empty() ? 1
                                                                : channels_(rank, op);
    entries_[static_cast<std::size_t>(worker_[static_cast<std::size_t>(rank)])].push_back(
        {op.type, op.chunk, op.microbatch, op.comm, index, timing.begin, timing.end, timing.moved,
         op.family, meets ? op.sequence : -1, taken, timing.slowed, op.bytes});
  }
}

StepTrace::Meetings StepTrace::meetings() const {
  Meetings meetings;
  meetings.all.resize(families_.size());
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    for (const Entry& entry : entries_[w]) {
      if (entry.sequence < 0) {
        continue;
      }
      const auto family = static_cast<std::size_t>(entry.family);
      const auto group = static_cast<std::size_t>(
          families_[family].group[static_cast<std::size_t>(workers_[w].rank)]);
      const auto sequence = static_cast<std::size_t>(entry.sequence);
      auto& of_family = meetings.all[family];
      of_family.resize(std::max(of_family.size(), group + 1));
      std::vector<Meeting>& own = of_family[group];
      own.resize(std::max(own.size(), sequence + 1));
      own[sequence].first = std::min(own[sequence].first, entry.begin);
      own[sequence].end = std::max(own[sequence].end, entry.end);
    }
  }
  return meetings;
}

/// How long an operation takes where nobody is late. Where one enters a collective late, others may
/// be through with it before the last, and a part may have been moved before.
Time StepTrace::takes(const Worker& worker, const Entry& entry, const Together& together,
                      Meetings& meetings) const {
  constexpr double kLate = 0.01;  // of what is left then
  const Time last = std::max(entry.begin, entry.moved);
  if (entry.sequence < 0) {
    return entry.end - last - entry.slowed;
  }
  const Family& family = families_[static_cast<std::size_t>(entry.family)];
  const auto group = static_cast<std::size_t>(family.group[static_cast<std::size_t>(worker.rank)]);
  const Meeting& meeting = meetings.all[static_cast<std::size_t>(entry.family)][group]
                                       [static_cast<std::size_t>(entry.sequence)];
  const Time seen = meeting.end - last;
  // A pass that gathers parameters is shorter by what the last one finds done (Replacement).
  if (gathers_in_passes_ > 0 && entry.begin == last) {
    return seen;
  }
  if (!together || !family.within_stages || entry.type == OpType::kClip ||
      (last - meeting.first).seconds() <= kLate * seen.seconds()) {
    return seen;
  }
  const auto [kind, is_new] =
      meetings.together.try_emplace({entry.family, entry.comm, entry.bytes.count(), worker.stage});
  if (is_new) {
    std::set<std::int32_t> groups;  // whole ones: workers may be the first of each alone
    for (const Worker& each : workers_) {
      if (each.stage == worker.stage && family.group[static_cast<std::size_t>(each.rank)] >= 0) {
        groups.insert(family.group[static_cast<std::size_t>(each.rank)]);
      }
    }
    std::vector<std::int32_t> ranks;
    for (std::size_t rank = 0; rank < family.group.size(); ++rank) {
      if (groups.contains(family.group[rank])) {
        ranks.push_back(static_cast<std::int32_t>(rank));
      }
    }
    ProgramOp op;
    op.comm = entry.comm;
    op.bytes = entry.bytes;
    op.family = entry.family;
    kind->second = ranks.size() <= kMostTogether ? together(op, ranks) : Time();
  }
  return std::max(seen, kind->second);
}

LonePasses StepTrace::lone_passes(std::size_t worker, const Together& together,
                                  Meetings& meetings) const {
  const OpProgram& program = *workers_[worker].program;
  std::vector<Time> takes(program.ops.size());
  std::vector<std::int32_t> taken(interference_.any() ? program.ops.size() : 0);
  for (const Entry& entry : entries_[worker]) {
    if (entry.type == OpType::kForwardReceive || entry.type == OpType::kBackwardReceive) {
      takes[static_cast<std::size_t>(entry.op)] =
          both_ways_ || gathers_in_passes_ > 0 ? Time() : entry.end;
      continue;
    }
    takes[static_cast<std::size_t>(entry.op)] =
        this->takes(workers_[worker], entry, together, meetings);
    if (!taken.empty()) {
      taken[static_cast<std::size_t>(entry.op)] = entry.taken;
    }
  }
  return lockstep::lone_passes(program, takes, interference_, taken, both_ways_);
}

void StepTrace::add_rows(std::int64_t step, Trace& trace, const Together& together) const {
  Meetings met = meetings();
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const Worker& worker = workers_[w];
    Rows rows;
    std::map<std::int32_t, std::vector<const Entry*>> gathers;  // of each chunk
    Span compute, reduced;
    std::vector<Span> weights;  // gradients of weights that have no rows
    for (const Entry& entry : entries_[w]) {
      const std::optional<TraceOp> type = row_type(entry.type);
      if (entry.type == OpType::kWeightGradient && !weight_rows_) {
        Span& weight = weights.emplace_back();
        weight.cover(entry.begin, entry.end);
        if ((entry.comm == CommType::kNone)) {
          weight.compute(entry.begin, entry.end);
        }
        continue;
      }
      if (!type) {
        continue;
      }
      const bool pass = is_compute(*type) || is_p2p(*type);
      const bool of_copies = both_ways_ && *type == TraceOp::kGradsReduceScatter;
      const std::int32_t chunk = of_copies ? entry.chunk : std::max<std::int32_t>(0, entry.chunk);
      if (*type == TraceOp::kParamsAllGather) {
        gathers[chunk].push_back(&entry);
        continue;
      }
      Span& span = rows[{*type, chunk, pass ? entry.microbatch : -1}];
      span.cover(entry.begin, entry.end);
      if ((entry.comm == CommType::kNone)) {
        span.compute(entry.begin, entry.end);
      }
      span.bytes += entry.bytes;
      span.family =
          is_compute(*type) || (entry.comm == CommType::kNone) ? span.family : entry.family;
      if (is_compute(*type)) {
        compute.cover(entry.begin, entry.end);
      } else if (*type == TraceOp::kGradsReduceScatter) {
        reduced.cover(entry.begin, entry.end);
      }
    }
    // Parameters are gathered beside the passes; the row has what the chunk's first one waits for.
    for (const auto& [chunk, parts] : gathers) {
      Time first = Time::max();
      for (const auto& [key, pass] : rows) {
        if (std::get<0>(key) == TraceOp::kForwardCompute && std::get<1>(key) == chunk) {
          first = std::min(first, pass.begin);
        }
      }
      Span span;
      for (const Entry* part : parts) {
        span.cover(std::min(part->begin, first), std::min(part->end, first));
        span.bytes += part->bytes;
        span.family = part->family;
      }
      rows.emplace(std::tuple(TraceOp::kParamsAllGather, chunk, -1), span);
    }
    if (both_ways_ || !weights.empty() || gathers_in_passes_ > 0) {
      begin_with_the_wait(rows, weights, gathers_in_passes_ > 0);
    }
    const Time tail = compute.end;
    const auto empty_row = [&](TraceOp type, Time at) {
      rows.try_emplace({type, -1, -1}, Span{.begin = at, .end = at});
    };
    // Nothing else waits for the gradients of weights that are worked out behind the last pass.
    Span behind{.begin = tail, .end = tail};
    Time all_computed = tail;
    for (const Span& each : weights) {
      all_computed = std::max(all_computed, each.end);
      behind.end += each.end > tail ? std::min(each.computed, each.end - tail) : Time();
    }
    behind.end = peers_ ? behind.end : all_computed;
    rows.emplace(Rows::key_type{TraceOp::kGc, -1, -1}, behind);
    if (rows.lower_bound({TraceOp::kLayernormGradsAllReduce, -1, -1}) ==
        rows.lower_bound({TraceOp::kOptimizer, -1, -1})) {
      empty_row(TraceOp::kLayernormGradsAllReduce, std::max(tail, reduced.end));
    }
    if (worker.stage == 0 || worker.stage == stages_ - 1) {
      if (rows.lower_bound({TraceOp::kEmbeddingGradsAllReduce, -1, -1}) ==
          rows.lower_bound({TraceOp::kForwardCompute, -1, -1})) {
        empty_row(TraceOp::kEmbeddingGradsAllReduce, std::max(tail, reduced.end));
      }
    }
    // A table of layers knows no clipping, and some have no optimizer.
    const Time all_reduced = std::max(tail, reduced.end);
    const auto begin_of = [&](TraceOp type, Time otherwise) {
      const auto row = rows.lower_bound({type, std::numeric_limits<std::int32_t>::min(), -1});
      return row != rows.end() && std::get<0>(row->first) == type ? row->second.begin : otherwise;
    };
    const auto has = [&](TraceOp type) { return begin_of(type, Time::max()) != Time::max(); };
    if (!has(TraceOp::kOptimizer)) {
      empty_row(TraceOp::kOptimizer, all_reduced);
    }
    if (!has(TraceOp::kOptimizerClip)) {
      empty_row(TraceOp::kOptimizerClip, begin_of(TraceOp::kOptimizer, all_reduced));
    }
    if (reduced.end > Time()) {
      Time before_clip = tail;
      for (const auto& [key, span] : rows) {
        if (std::get<0>(key) == TraceOp::kOptimizerClip) {
          before_clip = span.begin;
        }
      }
      empty_row(TraceOp::kSeparateGradsAllReduce, before_clip);
    }
    // Gradients are reduced beside the last pass; the row has what follows that pass, and the
    // gradients of weights behind it. Those of several chunks go over one stream.
    using Scatter = std::pair<std::int32_t, Span*>;  // of a chunk
    std::vector<Scatter> scatters;
    for (auto& [key, span] : rows) {
      if (std::get<0>(key) == TraceOp::kGradsReduceScatter) {
        scatters.emplace_back(std::get<1>(key), &span);
      }
    }
    std::ranges::stable_sort(scatters, {},
                             [](const Scatter& scatter) { return scatter.second->end; });
    Time scattered = weights.empty() ? Time() : all_computed;
    for (const auto& [chunk, span] : scatters) {
      Time last = scattered;
      for (const auto& [other, pass] : rows) {
        if ((std::get<0>(other) == TraceOp::kBackwardCompute ||
             std::get<0>(other) == TraceOp::kWeightCompute) &&
            std::get<1>(other) == chunk) {
          last = std::max(last, pass.end);
        }
      }
      span->begin = std::max(span->begin, last);
      span->end = std::max(span->begin, span->end);
      scattered = span->end;
    }
    struct Placed {
      TraceOp type;
      std::int32_t chunk, microbatch;
      Span span;
    };
    std::vector<Placed> ordered;
    ordered.reserve(rows.size());
    for (const auto& [key, span] : rows) {
      ordered.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), span});
    }
    std::ranges::stable_sort(ordered, {}, [](const Placed& row) { return row.span.begin; });
    // Messages in the order of the computations that they serve. With several chunks those that
    // have no peer are listed too, empty, as the profiler does.
    const auto messages = [&](TraceOp compute_type, TraceOp receive, TraceOp send) {
      Time before;
      for (std::size_t i = 0, count = ordered.size(); i < count; ++i) {
        const Placed pass = ordered[i];
        if (pass.type != compute_type) {
          continue;
        }
        const auto in = rows.find({receive, pass.chunk, pass.microbatch});
        const auto out = rows.find({send, pass.chunk, pass.microbatch});
        if (in != rows.end() || chunks_ > 1) {
          Span span{.begin = before, .end = before};
          if (in != rows.end()) {
            span.begin = std::max(before, in->second.begin);
            span.end = std::max(span.begin, in->second.end);
            span.bytes = in->second.bytes;
            span.family = in->second.family;
          }
          ordered.push_back({receive, pass.chunk, pass.microbatch, span});
        }
        if (out != rows.end() || chunks_ > 1) {
          const Span none{.begin = pass.span.end, .end = pass.span.end};
          ordered.push_back(
              {send, pass.chunk, pass.microbatch, out != rows.end() ? out->second : none});
        }
        before = pass.span.end;
      }
    };
    std::erase_if(ordered, [](const Placed& row) { return is_p2p(row.type); });
    messages(TraceOp::kForwardCompute, TraceOp::kForwardRecv, TraceOp::kForwardSend);
    messages(TraceOp::kBackwardCompute, TraceOp::kBackwardRecv, TraceOp::kBackwardSend);
    if (peers_) {
      for (std::size_t i = 0, count = ordered.size(); i < count; ++i) {
        Placed& pass = ordered[i];
        if (!is_compute(pass.type) || (pass.type == TraceOp::kWeightCompute && !weights_meet_)) {
          continue;
        }
        Placed transfers = pass;
        transfers.type = pass_of(pass.type).peer_comm;
        transfers.span.begin = pass.span.begin + pass.span.computed;
        pass.span.end = transfers.span.begin;
        pass.span.bytes = {};
        ordered.push_back(transfers);
      }
    }
    const LonePasses alone = lone_passes(w, together, met);
    const auto alone_s = [&](const Placed& row) {
      if (row.type == TraceOp::kGradsReduceScatter) {
        return seconds_of(alone.reductions, row.chunk);
      }
      if (row.type == TraceOp::kOptimizerClip && alone.clip) {
        return static_cast<float>(alone.clip->seconds());
      }
      if (is_compute(row.type) && (interference_.any() || both_ways_) && pure_passes_) {
        return seconds_of(alone.computes, pass_key(row.type, row.chunk, row.microbatch));
      }
      return is_peer_comm(row.type)
                 ? seconds_of(alone.waits, pass_key(row.type, row.chunk, row.microbatch))
                 : -1.0F;
    };
    std::map<TraceOp, std::int32_t> seq;
    // What has no time left stands where it was on its stream, the same on all workers.
    const auto place = [&](const Placed& row) {
      return row.type != TraceOp::kGradsReduceScatter
                 ? std::ptrdiff_t{0}
                 : std::ranges::find(scatters, row.chunk, &Scatter::first) - scatters.begin();
    };
    std::ranges::stable_sort(ordered, {}, place);
    std::ranges::stable_sort(ordered, {}, [](const Placed& row) { return row.type; });
    for (Placed& row : ordered) {
      const std::int32_t number = seq[row.type]++;
      const bool placed = is_compute(row.type) || is_peer_comm(row.type);
      const bool chunked = placed || row.type == TraceOp::kParamsAllGather ||
                           row.type == TraceOp::kGradsReduceScatter;
      add_row(trace, {.dp_rank = worker.dp_rank,
                      .stage = worker.stage,
                      .rank = worker.rank,
                      .step = step,
                      .optype = row.type,
                      .start_s = static_cast<float>(row.span.begin.seconds()),
                      .duration_s = static_cast<float>((row.span.end - row.span.begin).seconds()),
                      .seq_id = number,
                      .mc = chunked ? row.chunk : -1,
                      .mb_id = placed ? row.microbatch : -1,
                      .gmc = placed ? global_chunk(std::max(0, row.chunk), worker.stage) : -1});
      TraceExtra& extra = trace.extra;
      extra.bytes.push_back(row.span.bytes.count());
      extra.group.push_back(group_of(row.span.family, worker.rank));
      extra.tp_rank.push_back(worker.tp_rank);
      extra.cp_rank.push_back(worker.cp_rank);
      extra.ep_rank.push_back(worker.ep_rank);
      extra.alone_s.push_back(alone_s(row));
    }
  }
}

std::int32_t StepTrace::global_chunk(std::int32_t chunk, std::int32_t stage) const {
  if (both_ways_) {
    return chunk == 0 ? stage : stages_ - 1 - stage;
  }
  return chunk * stages_ + stage;
}

std::string StepTrace::group_of(std::int32_t family, std::int32_t rank) const {
  if (family < 0) {
    return {};
  }
  const Family& of = families_[static_cast<std::size_t>(family)];
  return fmt::format("{}[{}]", of.name, of.group[static_cast<std::size_t>(rank)]);
}

JobMeta StepTrace::meta() const {
  JobMeta meta;
  meta.trial_name = "simulated";
  meta.dp_size = dp_;
  meta.pp_size = stages_;
  meta.tp_size = tp_;
  meta.dsp_size = cp_;
  meta.vpp_size = chunks_;
  meta.gathers_in_passes = gathers_in_passes_;
  meta.gradients_behind_gc = splits_ && !weight_rows_ ? 1 : 0;
  meta.world_size = static_cast<std::int64_t>(dp_) * stages_ * tp_ * cp_;
  return meta;
}

}  // namespace lockstep
