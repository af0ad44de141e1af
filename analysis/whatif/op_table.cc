#include "analysis/whatif/op_table.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "analysis/whatif/stage_ops.h"
#include "analysis/whatif/step_filler.h"
#include "base/error.h"
#include "base/large_pages.h"

namespace lockstep::whatif {
namespace {

constexpr std::uint32_t kNoPlace = std::numeric_limits<std::uint32_t>::max();

auto key(const OpNode& n) { return std::tuple(n.stage, n.type, n.seq); }

bool has_peers(const Trace& t) { return !t.extra.tp_rank.empty() || !t.extra.cp_rank.empty(); }

/// The lane of a step that a row belongs to.
std::string place_text(const OpTable& table, std::size_t lane) {
  const Place place = place_of(table, lane);
  return table.peers() > 1 ? fmt::format("dp_rank {}, cp_rank {}, tp_rank {}", place.dp_rank,
                                         place.cp_rank, place.tp_rank)
                           : fmt::format("dp_rank {}", place.dp_rank);
}

/// How many of the ranks there are. ERRORS: the column is as long as some of the trace's files
/// only.
std::int32_t count_of(const std::vector<std::int32_t>& ranks, const char* field, const Trace& t,
                      const std::string& file) {
  if (ranks.empty()) {
    return 1;
  }
  if (ranks.size() != t.size()) {
    throw Error(fmt::format("{} of {} rows have a {}", ranks.size(), t.size(), field))
        .at(file)
        .field(field)
        .expected("a column that all files of the trace have, or none");
  }
  return *std::max_element(ranks.begin(), ranks.end()) + 1;
}

/// Fills `table.ranks` and checks that workers and ranks are one to one.
void find_workers(const Trace& t, const std::string& file, OpTable& table) {
  table.stages = *std::max_element(t.stage.begin(), t.stage.end()) + 1;
  table.dp = *std::max_element(t.dp_rank.begin(), t.dp_rank.end()) + 1;
  if (has_peers(t)) {
    table.tp = count_of(t.extra.tp_rank, "tp_rank", t, file);
    table.cp = count_of(t.extra.cp_rank, "cp_rank", t, file);
  }
  const double workers = static_cast<double>(table.stages) * static_cast<double>(table.dp) *
                         static_cast<double>(table.tp) * static_cast<double>(table.cp);
  if (workers > static_cast<double>(t.size())) {
    throw Error(fmt::format("{} stages, {} dp_ranks, {} tp_ranks and {} cp_ranks, but only {} rows",
                            table.stages, table.dp, table.tp, table.cp, t.size()))
        .at(file)
        .expected("rows of every worker");
  }
  table.ranks.assign(static_cast<std::size_t>(table.stages) * table.width(), -1);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const std::size_t lane = lane_of(table, t, i);
    std::int32_t& rank = table.ranks[static_cast<std::size_t>(t.stage[i]) * table.width() + lane];
    if (rank != -1 && rank != t.rank[i]) {
      throw Error(fmt::format("(stage {}, {}) has the ranks {} and {}", t.stage[i],
                              place_text(table, lane), rank, t.rank[i]))
          .at(file)
          .field("rank")
          .expected("one rank a worker")
          .hint(has_peers(t) ? "" : "columns tp_rank and cp_rank tell several workers apart");
    }
    rank = t.rank[i];
  }
  std::vector<std::int32_t> sorted = table.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      twice != sorted.end() && *twice != -1) {
    throw Error(fmt::format("rank {} is in two places (stage, dp_rank, cp_rank, tp_rank)", *twice))
        .at(file)
        .field("rank");
  }
  for (std::size_t w = 0; w < table.ranks.size(); ++w) {
    if (table.ranks[w] == -1) {
      throw Error(fmt::format("stage {} has no rows of {}", w / table.width(),
                              place_text(table, w % table.width())))
          .at(file)
          .expected(fmt::format("rows of each of {} stages and of {} workers on each", table.stages,
                                table.width()));
    }
  }
}

/// Which workers of a stage share experts: with n of them a group, in the order of their ranks,
/// the k-th of each ep_rank makes group k, as expert-parallel groups are blocks of ranks.
void find_expert_groups(const Trace& t, const std::string& file, OpTable& table) {
  if (count_of(t.extra.ep_rank, "ep_rank", t, file) < 2) {
    return;
  }
  const std::size_t width = table.width();
  std::vector<std::int32_t> ep_rank(table.ranks.size(), -1);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const std::size_t worker = static_cast<std::size_t>(t.stage[i]) * width + lane_of(table, t, i);
    if (ep_rank[worker] >= 0 && ep_rank[worker] != t.extra.ep_rank[i]) {
      throw Error(fmt::format("rank {} has the ep_ranks {} and {}", table.ranks[worker],
                              ep_rank[worker], t.extra.ep_rank[i]))
          .at(file)
          .field("ep_rank")
          .expected("one ep_rank a worker");
    }
    ep_rank[worker] = t.extra.ep_rank[i];
  }
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(table.stages); ++stage) {
    std::vector<std::size_t> lanes(width);
    std::iota(lanes.begin(), lanes.end(), std::size_t{0});
    std::sort(lanes.begin(), lanes.end(), [&](std::size_t a, std::size_t b) {
      return table.ranks[stage * width + a] < table.ranks[stage * width + b];
    });
    std::map<std::int32_t, std::int32_t> met;  // of each ep_rank
    std::vector<std::int32_t> group(width);
    for (const std::size_t lane : lanes) {
      group[lane] = met[ep_rank[stage * width + lane]]++;
    }
    if (stage > 0 && group != table.expert_group) {
      throw Error(fmt::format("the ep_ranks of stage {} are others than those of stage 0", stage))
          .at(file)
          .field("ep_rank")
          .expected("the same expert-parallel groups on every stage");
    }
    table.expert_group = std::move(group);
  }
}

/// Of the reference step, whose rows are [begin, end).
std::vector<OpNode> find_nodes(const OpTable& table, const Trace& t, std::size_t begin,
                               std::size_t end) {
  std::vector<OpNode> nodes;
  for (std::size_t i = begin; i < end; ++i) {
    if (lane_of(table, t, i) == 0) {
      nodes.push_back({.stage = t.stage[i],
                       .type = t.optype[i],
                       .seq = t.seq_id[i],
                       .chunk = t.mc[i],
                       .global_chunk = t.gmc[i],
                       .microbatch = t.mb_id[i],
                       .start_s = t.start_s[i],
                       .end_s = t.start_s[i] + t.duration_s[i]});
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const OpNode& a, const OpNode& b) { return key(a) < key(b); });
  nodes.erase(std::unique(nodes.begin(), nodes.end(),
                          [](const OpNode& a, const OpNode& b) { return key(a) == key(b); }),
              nodes.end());
  return nodes;
}

/// In the reference step the operations of a type are numbered 0, 1, 2, ….
void check_numbering(const OpTable& table, std::int64_t step, const std::string& file) {
  for (std::size_t i = 0; i < table.nodes.size(); ++i) {
    const OpNode& node = table.nodes[i];
    const bool first = i == 0 || std::tie(table.nodes[i - 1].stage, table.nodes[i - 1].type) !=
                                     std::tie(node.stage, node.type);
    const std::int32_t expected = first ? 0 : table.nodes[i - 1].seq + 1;
    if (node.seq != expected) {
      throw Error(fmt::format("step {} has no {} {} on stage {}, but a {} {}", step,
                              to_text(node.type), expected, node.stage, to_text(node.type),
                              node.seq))
          .at(file)
          .field("seq_id");
    }
  }
}

bool goes_both_ways(const OpTable& table) {
  bool second = false;
  for (const OpNode& node : table.nodes) {
    if (is_compute(node.type) && node.global_chunk >= 0) {
      if (node.chunk > 1 ||
          node.global_chunk != (node.chunk == 1 ? table.stages - 1 - node.stage : node.stage)) {
        return false;
      }
      second = second || node.chunk == 1;
    }
  }
  return second && table.stages > 1;
}

/// Whether a pass of some stage begins before half of the one before it is over.
bool overlaps(const OpTable& table) {
  std::vector<const OpNode*> passes;
  for (const OpNode& node : table.nodes) {
    if (is_compute(node.type)) {
      passes.push_back(&node);
    }
  }
  std::ranges::stable_sort(
      passes, {}, [](const OpNode* node) { return std::pair(node->stage, node->start_s); });
  for (std::size_t i = 1; i < passes.size(); ++i) {
    const OpNode &before = *passes[i - 1], &pass = *passes[i];
    const float shorter = std::min(before.end_s - before.start_s, pass.end_s - pass.start_s);
    if (before.stage == pass.stage && before.end_s - pass.start_s > shorter / 2) {
      return true;
    }
  }
  return false;
}

/// OpTable::turns_with.
void find_turns(OpTable& table) {
  std::vector<std::uint32_t> passes;
  for (std::uint32_t n = 0; n < table.nodes.size(); ++n) {
    if (is_compute(table.nodes[n].type)) {
      if (table.computes(n).data() == table.duration(n).data()) {
        return;
      }
      passes.push_back(n);
    }
  }
  std::ranges::stable_sort(passes, {}, [&](std::uint32_t n) {
    return std::pair(table.nodes[n].stage, table.nodes[n].start_s);
  });
  table.turns_with.assign(table.nodes.size(), OpTable::kAlone);
  for (std::size_t i = 1; i < passes.size(); ++i) {
    const OpNode &before = table.nodes[passes[i - 1]], &pass = table.nodes[passes[i]];
    if (before.stage == pass.stage && !ended_before(table, passes[i - 1], passes[i])) {
      table.turns_with[passes[i - 1]] = passes[i];
      table.turns_with[passes[i]] = passes[i - 1];
    }
  }
}

/// First rows of the steps, and the end.
std::vector<std::size_t> step_bounds(const Trace& t) {
  std::vector<std::size_t> bounds;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (i == 0 || t.step[i] != t.step[i - 1]) {
      bounds.push_back(i);
    }
  }
  bounds.push_back(t.size());
  return bounds;
}

/// What keeps a step from being complete by itself, of all ranks, which have the same operations;
/// empty if nothing does.
std::string gap_of(const OpTable& table, const Trace& trace, const std::string& file,
                   std::size_t begin, std::size_t end) {
  std::string problem = absent_rank(table, trace, begin, end);
  if (problem.empty()) {
    Trace step;
    append_rows(step, trace, begin, end);
    try {
      make_op_table(step, file, {.keep_places = false}, nullptr);
    } catch (const Error& error) {
      problem = error.message();
    }
  }
  return problem;
}

/// The first of the longest steps that are complete by themselves: a step may lack the last of its
/// operations and still be one. Warns of those before it. ERRORS: none is.
std::size_t first_complete_step(const OpTable& table, const Trace& trace, const std::string& file,
                                const std::vector<std::size_t>& bounds, Warnings* warnings) {
  const auto rows = [&](std::size_t s) { return bounds[s + 1] - bounds[s]; };
  std::vector<std::size_t> longest_first(bounds.size() - 1);
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::ranges::stable_sort(longest_first, std::greater<>(), rows);
  std::string first_problem;
  for (const std::size_t chosen : longest_first) {
    std::string problem = gap_of(table, trace, file, bounds[chosen], bounds[chosen + 1]);
    if (!problem.empty()) {
      first_problem = first_problem.empty() ? problem : first_problem;
      continue;
    }
    for (std::size_t s = 0; s < chosen; ++s) {
      std::string gap = gap_of(table, trace, file, bounds[s], bounds[s + 1]);
      if (gap.empty()) {
        gap = fmt::format("step {} has {} rows, step {} has {}", trace.step[bounds[s]], rows(s),
                          trace.step[bounds[chosen]], rows(chosen));
      }
      warn_of_step(gap, file, warnings);
    }
    return chosen;
  }
  throw no_complete_step(first_problem, file);
}

/// The table's columns cut down to the steps that were kept.
void squeeze(OpTable& table, std::size_t kept) {
  const std::size_t before = table.lanes();
  table.steps.resize(kept);
  const std::size_t after = table.lanes();
  const auto move = [&](std::vector<float>& column) {
    if (column.empty()) {
      return;
    }
    for (std::size_t n = 0; n < table.nodes.size(); ++n) {
      std::copy_n(column.begin() + static_cast<std::ptrdiff_t>(n * before), after,
                  column.begin() + static_cast<std::ptrdiff_t>(n * after));
    }
    column.resize(table.nodes.size() * after);
  };
  move(table.start_s);
  move(table.duration_s);
  move(table.alone_s);
  move(table.undisturbed_s);
  for (std::uint32_t& place : table.place_of_row) {
    if (place != kNoPlace) {
      place = static_cast<std::uint32_t>(place / before * after + place % before);
    }
  }
}

}  // namespace

std::int32_t global_chunk(const OpNode& node, std::int32_t stages) {
  return node.global_chunk >= 0 ? node.global_chunk : std::max(0, node.chunk) * stages + node.stage;
}

std::string to_text(const OpNode& node) {
  return fmt::format("{} {} of stage {}", to_text(node.type), node.seq, node.stage);
}

bool OpTable::is_beside_pass(std::uint32_t node) const {
  const OpNode& own = nodes[node];
  if (own.type != TraceOp::kGradsReduceScatter || own.microbatch < 0 || node + 1 == nodes.size()) {
    return false;
  }
  const OpNode& next = nodes[node + 1];
  return std::tie(next.stage, next.type, next.chunk, next.microbatch) ==
         std::tie(own.stage, own.type, own.chunk, own.microbatch);
}

std::size_t OpTable::find(std::int32_t stage, TraceOp type, std::int32_t seq) const {
  const std::tuple wanted(stage, type, seq);
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), wanted,
                                      [](const OpNode& n, const auto& k) { return key(n) < k; });
  return found == nodes.end() || key(*found) != wanted
             ? npos
             : static_cast<std::size_t>(found - nodes.begin());
}

Place place_of(const OpTable& table, std::size_t lane) {
  const auto at = static_cast<std::int32_t>(lane);
  return {at / table.peers(), at / table.tp % table.cp, at % table.tp};
}

Error no_complete_step(const std::string& problem, const std::string& file) {
  return Error(fmt::format("no step is complete: {}", problem))
      .at(file)
      .expected("a step at least in which all workers of a stage have the same operations");
}

OpTable make_op_table(const Trace& trace, const std::string& file, const OpTableOptions& options,
                      Warnings* warnings) {
  if (trace.size() == 0) {
    throw Error("the trace has no rows").at(file);
  }
  OpTable table;
  find_workers(trace, file, table);
  const std::vector<std::size_t> bounds = step_bounds(trace);
  find_expert_groups(trace, file, table);
  const std::size_t reference =
      options.drop_incomplete_steps ? first_complete_step(table, trace, file, bounds, warnings) : 0;
  const std::int64_t reference_step = trace.step[bounds[reference]];
  table.nodes = find_nodes(table, trace, bounds[reference], bounds[reference + 1]);
  std::int32_t stage = 0;
  for (const OpNode& node : table.nodes) {
    stage += node.stage > stage ? 1 : 0;
    if (node.stage > stage) {
      break;
    }
  }
  if (table.nodes.empty() || stage + 1 != table.stages || table.nodes.front().stage != 0) {
    throw Error(fmt::format("step {}: the first worker has no rows on some stage", reference_step))
        .at(file)
        .expected("a first step that is complete: it is the model of the others")
        .hint(kIncompleteStepHint);
  }
  check_numbering(table, reference_step, file);
  table.both_ways = goes_both_ways(table);
  table.side_by_side =
      table.both_ways || (trace.extra.alone_s.size() == trace.size() && overlaps(table));
  for (std::size_t s = reference; s + 1 < bounds.size(); ++s) {
    table.steps.push_back(trace.step[bounds[s]]);
  }
  const double instances =
      static_cast<double>(table.nodes.size()) * static_cast<double>(table.lanes());
  if (instances > 4e9 || instances > 64.0 * static_cast<double>(trace.size()) + 1e6) {
    throw Error(fmt::format("{} operations in {} steps of {} workers a stage, but only {} rows",
                            table.nodes.size(), table.steps.size(), table.width(), trace.size()))
        .at(file)
        .expected("every operation in every step and worker");
  }
  resize_large(table.start_s, table.size());
  resize_large(table.duration_s, table.size());
  if (trace.extra.alone_s.size() == trace.size()) {
    resize_large(table.alone_s, table.size());
  }
  if (trace.extra.undisturbed_s.size() == trace.size()) {
    resize_large(table.undisturbed_s, table.size());
  }
  if (options.keep_places) {
    table.place_of_row.assign(trace.size(), kNoPlace);
  }
  StepFiller filler(trace, reference_step, table);
  std::int64_t repeated = 0;
  std::size_t kept = 0;
  for (std::size_t s = reference; s + 1 < bounds.size(); ++s) {
    const std::string problem = filler.fill(bounds[s], bounds[s + 1], kept, repeated);
    if (problem.empty()) {
      table.steps[kept++] = trace.step[bounds[s]];
      continue;
    }
    if (!options.drop_incomplete_steps) {
      throw Error(problem).at(file).hint(kIncompleteStepHint);
    }
    warn_of_step(problem, file, warnings);
    if (options.keep_places) {
      std::fill(table.place_of_row.begin() + static_cast<std::ptrdiff_t>(bounds[s]),
                table.place_of_row.begin() + static_cast<std::ptrdiff_t>(bounds[s + 1]), kNoPlace);
    }
  }
  if (kept < table.steps.size()) {
    squeeze(table, kept);
  }
  if (table.side_by_side) {
    find_turns(table);
  }
  if (repeated > 0 && warnings != nullptr) {
    warnings->add(fmt::format("{}: {} repeated rows left out", file, repeated));
  }
  return table;
}

void keep_steps(Trace& trace, std::span<const StepRange> ranges, std::vector<bool>& met) {
  Trace kept;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    bool keep = false;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      if (ranges[r].first <= trace.step[i] && trace.step[i] <= ranges[r].last) {
        keep = true;
        met[r] = true;
      }
    }
    if (keep) {
      append_rows(kept, trace, i, i + 1);
    }
  }
  trace = std::move(kept);
}

void require_steps(std::span<const StepRange> ranges, const std::vector<bool>& met,
                   const std::string& file) {
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    if (!met[r]) {
      throw Error(
          fmt::format("no step of the trace lies in {}-{}", ranges[r].first, ranges[r].last))
          .at(file)
          .field("--steps");
    }
  }
}

}  // namespace lockstep::whatif
