// The rows of a traced step, worker by worker.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/replay/step_trace.h"

namespace lockstep {
namespace {

struct Span {
  Time begin = Time::max(), end;
  Bytes bytes;
  std::int32_t family = -1;
  Time computed;  // time in which the rank computes
  Time behind;    // of a reduction: for so long its row leaves out what follows the chunk's passes
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
/// With `gathers` all passes but the first do so: they wait for the parameters they begin with,
/// which are gathered behind what is summed of gradients among replicas before (`sums`, when those
/// end).
void begin_with_the_wait(Rows& rows, const std::vector<Span>& weights, bool gathers,
                         const std::vector<Time>& sums) {
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
    Time from = std::max(ended, there);
    if (const auto first = rows.find({TraceOp::kParamsAllGather, chunk, -1});
        type == TraceOp::kForwardCompute && first != rows.end()) {
      from = std::max(from, first->second.end);  // of a chunk's first pass
    }
    for (const Time sum : sums) {
      from = sum <= pass->begin ? std::max(from, sum) : from;
    }
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

/// Parameters that are gathered behind the optimizer are the next step's: rows before this one's,
/// in which the step waits for all of them, so that those of chunk 0 come last.
void put_before_the_step(Rows& rows, std::vector<Span>& gathers) {
  std::ranges::stable_sort(gathers, {}, &Span::begin);
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    Span span = gathers[i];
    span.begin -= gathers.back().end;
    span.end -= gathers.back().end;
    const auto chunk = static_cast<std::int32_t>(gathers.size() - 1 - i);
    rows.emplace(std::tuple(TraceOp::kParamsAllGather, chunk, -1), span);
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

/// What a worker's operations come to, before rows are put in order.
struct StepTrace::Collected {
  Rows rows;
  Span compute, reduced;                 // the passes; the gradients' reductions
  std::vector<Span> weights;             // gradients of weights that have no rows
  std::map<std::int32_t, Time> weighed;  // of each chunk, when the last of those end
  Time all_computed;                     // passes and gradients of weights
};

/// A row, and which it is.
struct StepTrace::Placed {
  TraceOp type;
  std::int32_t chunk, microbatch;
  Span span;
  std::optional<Time> alone = std::nullopt;  // of a pass's reductions
};

/// When the optimizer is through; never without one.
Time StepTrace::optimized_by(std::span<const Entry> entries) {
  Time optimized;
  for (const Entry& entry : entries) {
    optimized = entry.type == OpType::kOptimizer ? std::max(optimized, entry.end) : optimized;
  }
  return optimized > Time() ? optimized : Time::max();
}

/// How long parameters are gathered behind the optimizer.
Time StepTrace::gathered_behind(std::span<const Entry> entries) {
  const Time optimized = optimized_by(entries);
  Span behind;
  for (const Entry& entry : entries) {
    if (entry.type == OpType::kGatherParameters && entry.begin >= optimized) {
      behind.cover(entry.begin, entry.end);
    }
  }
  return behind.end > Time() ? behind.end - behind.begin : Time();
}

StepTrace::Collected StepTrace::collect(std::span<const Entry> entries) const {
  const auto whole = [](const std::vector<const Entry*>& parts, Time until = Time::max()) {
    Span span;
    for (const Entry* part : parts) {
      span.cover(std::min(part->begin, until), std::min(part->end, until));
      span.bytes += part->bytes;
      span.family = part->family;
    }
    return span;
  };
  Collected all;
  std::map<std::int32_t, std::vector<const Entry*>> gathers, behind;  // of each chunk
  std::vector<Time> sums;  // of gradients among replicas that each hold all parameters
  const Time optimized = optimized_by(entries);
  for (const Entry& entry : entries) {
    const bool computes = entry.comm == CommType::kNone;
    if (entry.type == OpType::kWeightGradient && !weight_rows_) {
      Span& weight = all.weights.emplace_back();
      weight.cover(entry.begin, entry.end);
      Time& last = all.weighed[entry.chunk];
      last = std::max(last, entry.end);
      if (computes) {
        weight.compute(entry.begin, entry.end);
      }
      continue;
    }
    const std::optional<TraceOp> type = row_type(entry.type);
    if (!type) {
      continue;
    }
    const bool pass = is_compute(*type) || is_p2p(*type);
    const bool of_copies = both_ways_ && *type == TraceOp::kGradsReduceScatter;
    const std::int32_t chunk = of_copies ? entry.chunk : std::max<std::int32_t>(0, entry.chunk);
    if (*type == TraceOp::kParamsAllGather) {
      (entry.begin >= optimized ? behind : gathers)[chunk].push_back(&entry);
      continue;
    }
    const bool of_pass = pass || (passes_reduce_ && *type == TraceOp::kGradsReduceScatter);
    Span& span = all.rows[{*type, chunk, of_pass ? entry.microbatch : -1}];
    span.cover(entry.begin, entry.end);
    if (computes) {
      span.compute(entry.begin, entry.end);
    }
    span.bytes += entry.bytes;
    span.family = is_compute(*type) || computes ? span.family : entry.family;
    if (passes_gather_ && *type == TraceOp::kGradsReduceScatter &&
        entry.comm == CommType::kAllReduce) {
      sums.push_back(entry.end);
    }
    if (is_compute(*type)) {
      all.compute.cover(entry.begin, entry.end);
    } else if (*type == TraceOp::kGradsReduceScatter) {
      all.reduced.cover(entry.begin, entry.end);
    }
  }
  // Parameters are gathered beside the passes; the row has what the chunk's first one waits for. On
  // their stream those of a chunk wait for all of the one before, also for what its first pass does
  // not wait for, so that their row begins where that of the one before ends.
  Time cut, gathered;  // where the row before ends, and its last part
  for (const auto& [chunk, parts] : gathers) {
    Time first = Time::max();
    for (const auto& [key, pass] : all.rows) {
      if (std::get<0>(key) == TraceOp::kForwardCompute && std::get<1>(key) == chunk) {
        first = std::min(first, pass.begin);
      }
    }
    Span row = whole(parts, first);
    if (!passes_gather_ && cut < row.begin && row.begin <= gathered) {
      row.begin = cut;
    }
    cut = row.end;
    gathered = whole(parts).end;
    all.rows.emplace(std::tuple(TraceOp::kParamsAllGather, chunk, -1), row);
  }
  std::vector<Span> before;
  for (const auto& [chunk, parts] : behind) {
    before.push_back(whole(parts));
  }
  put_before_the_step(all.rows, before);
  if (side_by_side_ || !all.weights.empty() || passes_gather_) {
    begin_with_the_wait(all.rows, all.weights, passes_gather_, sums);
  }
  all.all_computed = all.compute.end;
  for (const Span& each : all.weights) {
    all.all_computed = std::max(all.all_computed, each.end);
  }
  return all;
}

/// What stands behind the passes, some of it empty.
void StepTrace::add_end(std::int32_t stage, Collected& all) const {
  Rows& rows = all.rows;
  const Time tail = all.compute.end, all_reduced = std::max(tail, all.reduced.end);
  const auto begin_of = [&](TraceOp type) -> std::optional<Time> {
    const auto row = rows.lower_bound({type, std::numeric_limits<std::int32_t>::min(), -1});
    return row != rows.end() && std::get<0>(row->first) == type ? std::optional(row->second.begin)
                                                                : std::nullopt;
  };
  const auto empty_row_if_none = [&](TraceOp type, Time at) {
    if (!begin_of(type)) {
      rows.try_emplace({type, -1, -1}, Span{.begin = at, .end = at});
    }
  };
  // Nothing else waits for the gradients of weights that are worked out behind the last pass.
  Span behind{.begin = tail, .end = tail};
  for (const Span& each : all.weights) {
    behind.end += each.end > tail ? std::min(each.computed, each.end - tail) : Time();
  }
  behind.end = peers_ ? behind.end : all.all_computed;
  rows.emplace(Rows::key_type{TraceOp::kGc, -1, -1}, behind);
  empty_row_if_none(TraceOp::kLayernormGradsAllReduce, all_reduced);
  if (stage == 0 || stage == stages_ - 1) {
    empty_row_if_none(TraceOp::kEmbeddingGradsAllReduce, all_reduced);
  }
  // A table of layers knows no clipping, and some have no optimizer.
  empty_row_if_none(TraceOp::kOptimizer, all_reduced);
  empty_row_if_none(TraceOp::kOptimizerClip, begin_of(TraceOp::kOptimizer).value_or(all_reduced));
  if (all.reduced.end > Time()) {
    empty_row_if_none(TraceOp::kSeparateGradsAllReduce,
                      begin_of(TraceOp::kOptimizerClip).value_or(tail));
  }
}

/// Gradients are reduced beside the last pass; the row has what follows that pass, and the
/// gradients of weights behind it. Those of several chunks go over one stream. Returns the chunks
/// in its order.
std::vector<std::int32_t> StepTrace::cut_scatters(Collected& all) {
  using Scatter = std::pair<std::int32_t, Span*>;  // of a chunk
  std::vector<Scatter> scatters;
  for (auto& [key, span] : all.rows) {
    if (std::get<0>(key) == TraceOp::kGradsReduceScatter) {
      scatters.emplace_back(std::get<1>(key), &span);
    }
  }
  std::ranges::stable_sort(scatters, {},
                           [](const Scatter& scatter) { return scatter.second->end; });
  std::vector<std::int32_t> chunks;
  Time scattered;
  for (const auto& [chunk, span] : scatters) {
    Time last = std::max(scattered, all.weighed[chunk]);
    for (const auto& [key, pass] : all.rows) {
      const auto& [type, other, microbatch] = key;
      if (is_compute(type) && type != TraceOp::kForwardCompute && other == chunk) {
        last = std::max(last, pass.end);
      }
    }
    const Time from = std::max(span->begin, last);
    scattered = std::max(from, span->end);
    // Weights' gradients without rows are behind the passes of all chunks (gc).
    span->begin = all.weights.empty() ? from : std::max(from, all.all_computed);
    span->end = std::max(span->begin, span->end);
    span->behind = span->begin - from;
    chunks.push_back(chunk);
  }
  return chunks;
}

/// Takes the reductions of passes out of the rows. They go over one stream: what is hidden beside
/// a pass begins where what is left of the one before ends, or later, so that it ends when that
/// which is left behind the pass has to begin. That waits for the pass.
std::vector<StepTrace::Placed> StepTrace::reductions_of_passes(Collected& all,
                                                               const LonePasses& alone) {
  std::vector<Placed> reductions;
  for (const auto& [key, span] : all.rows) {
    const auto& [type, chunk, microbatch] = key;
    if (type == TraceOp::kGradsReduceScatter && microbatch >= 0) {
      reductions.push_back({type, chunk, microbatch, span});
    }
  }
  std::ranges::stable_sort(reductions, {}, [](const Placed& row) { return row.span.end; });
  std::vector<Placed> rows;
  Time before;
  for (Placed& behind : reductions) {
    const auto& [takes_beside, takes_behind] =
        alone.reductions_of_passes.at({std::max(0, behind.chunk), behind.microbatch});
    Time pass_ends;
    for (const TraceOp pass : {TraceOp::kBackwardCompute, TraceOp::kWeightCompute}) {
      const auto row = all.rows.find({pass, behind.chunk, behind.microbatch});
      pass_ends = row == all.rows.end() ? pass_ends : std::max(pass_ends, row->second.end);
    }
    Placed beside = behind;
    const Time end = std::max({behind.span.end, pass_ends, before});
    const auto at = [&](Time left) { return std::max(before, end - std::min(end, left)); };
    beside.span.bytes = {};
    beside.span.begin = at(takes_behind + takes_beside);
    beside.span.end = at(takes_behind);
    beside.alone = takes_beside;
    behind.span.begin = std::max(beside.span.end, pass_ends);
    behind.span.end = before = end;
    behind.alone = takes_behind;
    all.rows.erase({behind.type, behind.chunk, behind.microbatch});
    rows.push_back(std::move(beside));
    rows.push_back(std::move(behind));
  }
  return rows;
}

/// The rows by their begin, messages behind, in the order of the computations that they serve. With
/// several chunks those that have no peer are listed too, empty, as the profiler does.
std::vector<StepTrace::Placed> StepTrace::in_order(const Collected& all) const {
  const Rows& rows = all.rows;
  std::vector<Placed> ordered;
  ordered.reserve(rows.size());
  for (const auto& [key, span] : rows) {
    if (!is_p2p(std::get<0>(key))) {
      ordered.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), span});
    }
  }
  std::ranges::stable_sort(ordered, {}, [](const Placed& row) { return row.span.begin; });
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
  messages(TraceOp::kForwardCompute, TraceOp::kForwardRecv, TraceOp::kForwardSend);
  messages(TraceOp::kBackwardCompute, TraceOp::kBackwardRecv, TraceOp::kBackwardSend);
  return ordered;
}

/// Passes end when the worker has computed; what is left of them are transfers with peers.
void StepTrace::cut_passes(std::vector<Placed>& rows) const {
  for (std::size_t i = 0, count = rows.size(); i < count; ++i) {
    Placed& pass = rows[i];
    if (!is_compute(pass.type) || (pass.type == TraceOp::kWeightCompute && !weights_meet_)) {
      continue;
    }
    Placed transfers = pass;
    transfers.type = pass_of(pass.type).peer_comm;
    transfers.span.begin = pass.span.begin + pass.span.computed;
    pass.span.end = transfers.span.begin;
    pass.span.bytes = {};
    rows.push_back(transfers);
  }
}

/// TraceExtra::alone_s of a row.
float StepTrace::alone_s(const Placed& row, const LonePasses& alone) const {
  if (row.alone) {
    return static_cast<float>(row.alone->seconds());
  }
  if (row.type == TraceOp::kGradsReduceScatter) {
    const float whole = seconds_of(alone.reductions, row.chunk);
    return whole < 0 ? whole
                     : std::max(0.0F, whole - static_cast<float>(row.span.behind.seconds()));
  }
  if (row.type == TraceOp::kOptimizerClip && alone.clip) {
    return static_cast<float>(alone.clip->seconds());
  }
  if (is_compute(row.type) && (interference_.any() || side_by_side_) && pure_passes_) {
    return seconds_of(alone.computes, pass_key(row.type, row.chunk, row.microbatch));
  }
  return is_peer_comm(row.type)
             ? seconds_of(alone.waits, pass_key(row.type, row.chunk, row.microbatch))
             : -1.0F;
}

void StepTrace::add_rows(std::int64_t step, Trace& trace, const Together& together) const {
  Meetings met = meetings();
  Time before;
  for (const std::vector<Entry>& entries : entries_) {
    before = std::max(before, gathered_behind(entries));
  }
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const Worker& worker = workers_[w];
    Collected all = collect(entries_[w]);
    add_end(worker.stage, all);
    const LonePasses alone = lone_passes(w, together, met);
    const std::vector<Placed> of_passes = reductions_of_passes(all, alone);
    std::map<OfPass, std::size_t> place;  // of reductions on their stream
    for (const Placed& row : of_passes) {
      place.try_emplace({row.chunk, row.microbatch}, place.size());
    }
    for (const std::int32_t chunk : cut_scatters(all)) {
      place.try_emplace({chunk, -1}, place.size());
    }
    std::vector<Placed> rows = in_order(all);
    rows.insert(rows.end(), of_passes.begin(), of_passes.end());
    if (peers_) {
      cut_passes(rows);
    }
    // By type; of each, by begin. But reductions that have no time left stand where they were on
    // their stream, the same on all workers.
    std::ranges::stable_sort(rows, {}, [&](const Placed& row) {
      return std::pair(row.type, row.type == TraceOp::kGradsReduceScatter
                                     ? place.at({row.chunk, row.microbatch})
                                     : std::size_t{0});
    });
    std::map<TraceOp, std::int32_t> seq;
    for (const Placed& row : rows) {
      const bool placed = is_compute(row.type) || is_peer_comm(row.type);
      const bool chunked = placed || row.type == TraceOp::kParamsAllGather ||
                           row.type == TraceOp::kGradsReduceScatter;
      add_row(trace, {.dp_rank = worker.dp_rank,
                      .stage = worker.stage,
                      .rank = worker.rank,
                      .step = step,
                      .optype = row.type,
                      .start_s = static_cast<float>((before + row.span.begin).seconds()),
                      .duration_s = static_cast<float>((row.span.end - row.span.begin).seconds()),
                      .seq_id = seq[row.type]++,
                      .mc = chunked ? row.chunk : -1,
                      .mb_id = placed || row.alone ? row.microbatch : -1,
                      .gmc = placed ? global_chunk(std::max(0, row.chunk), worker.stage) : -1});
      TraceExtra& extra = trace.extra;
      extra.bytes.push_back(row.span.bytes.count());
      extra.group.push_back(group_of(row.span.family, worker.rank));
      extra.tp_rank.push_back(worker.tp_rank);
      extra.cp_rank.push_back(worker.cp_rank);
      extra.ep_rank.push_back(worker.ep_rank);
      extra.alone_s.push_back(alone_s(row, alone));
      if (interference_.any() && pure_passes_) {
        extra.undisturbed_s.push_back(
            is_compute(row.type)
                ? seconds_of(alone.undisturbed, pass_key(row.type, row.chunk, row.microbatch))
                : -1.0F);
      }
    }
  }
}

}  // namespace lockstep
