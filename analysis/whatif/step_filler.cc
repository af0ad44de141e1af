#include "analysis/whatif/step_filler.h"

#include <set>
#include <tuple>

#include <fmt/format.h>

namespace lockstep::whatif {
namespace {

std::string row_text(const Trace& t, std::size_t row) {
  return fmt::format("step {}, rank {} (stage {}, dp_rank {}): {} {}", t.step[row], t.rank[row],
                     t.stage[row], t.dp_rank[row], to_text(t.optype[row]), t.seq_id[row]);
}

}  // namespace

std::size_t lane_of(const OpTable& table, const Trace& t, std::size_t row) {
  std::int32_t lane = t.dp_rank[row];
  if (table.peers() > 1) {
    const std::int32_t cp = t.extra.cp_rank.empty() ? 0 : t.extra.cp_rank[row];
    const std::int32_t tp = t.extra.tp_rank.empty() ? 0 : t.extra.tp_rank[row];
    lane = (lane * table.cp + cp) * table.tp + tp;
  }
  return static_cast<std::size_t>(lane);
}

std::string absent_rank(const OpTable& table, const Trace& trace, std::size_t begin,
                        std::size_t end) {
  const std::set<std::int32_t> present(trace.rank.begin() + static_cast<std::ptrdiff_t>(begin),
                                       trace.rank.begin() + static_cast<std::ptrdiff_t>(end));
  for (const std::int32_t rank : table.ranks) {
    if (present.count(rank) == 0) {
      return fmt::format("step {} has no rows of rank {}", trace.step[begin], rank);
    }
  }
  return "";
}

void warn_of_step(const std::string& problem, const std::string& file, Warnings* warnings) {
  if (warnings != nullptr) {
    warnings->add(fmt::format("{}: a step is left out: {}", file, problem));
  }
}

StepFiller::StepFiller(const Trace& trace, std::int64_t reference, OpTable& table)
    : trace_(trace), reference_(reference), table_(table) {
  const auto& nodes = table.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || nodes[i].stage != nodes[i - 1].stage) {
      stage_begin_.push_back(i);
    }
  }
  stage_begin_.push_back(nodes.size());
}

std::string StepFiller::fill(std::size_t begin, std::size_t end, std::size_t index,
                             std::int64_t& repeated) {
  const std::size_t first_lane = index * table_.width();
  std::size_t row = begin;
  workers_ = 0;
  while (row < end) {
    std::size_t next = row;
    while (next < end && trace_.rank[next] == trace_.rank[row]) {
      ++next;
    }
    const std::size_t lane = first_lane + lane_of(table_, trace_, row);
    if (std::string problem = fill_worker(row, next, lane, repeated); !problem.empty()) {
      return problem;
    }
    ++workers_;
    row = next;
  }
  if (workers_ == table_.ranks.size()) {
    return "";
  }
  const std::string absent = absent_rank(table_, trace_, begin, end);
  return absent.empty()
             ? fmt::format("step {}: a rank's rows are in two places", trace_.step[begin])
             : absent;
}

/// Rows of one worker come in the order of its nodes (rank, optype, seq_id are sorted).
std::string StepFiller::fill_worker(std::size_t row, std::size_t end, std::size_t lane,
                                    std::int64_t& repeated) {
  const auto stage = static_cast<std::size_t>(trace_.stage[row]);
  const std::size_t lanes = table_.lanes();
  std::size_t node = stage_begin_[stage];
  const std::size_t last = stage_begin_[stage + 1];
  const std::size_t first_row = row;
  for (; row < end; ++row) {
    if (row > first_row && same_op(row, row - 1)) {
      const TraceRow one = row_at(trace_, row - 1), other = row_at(trace_, row);
      if (one.start_s != other.start_s || one.duration_s != other.duration_s) {
        return row_text(trace_, row) + " stands twice, with different times";
      }
      if (one.mc != other.mc || one.mb_id != other.mb_id || one.gmc != other.gmc) {
        return row_text(trace_, row) + " stands twice, with different mc, mb_id or gmc";
      }
      ++repeated;
      continue;
    }
    if (node == last || table_.nodes[node].type != trace_.optype[row] ||
        table_.nodes[node].seq != trace_.seq_id[row]) {
      return mismatch(row, node, last);
    }
    const std::size_t place = node * lanes + lane;
    table_.start_s[place] = trace_.start_s[row];
    table_.duration_s[place] = trace_.duration_s[row];
    if (!table_.alone_s.empty()) {
      table_.alone_s[place] = trace_.extra.alone_s[row];
    }
    if (!table_.undisturbed_s.empty()) {
      table_.undisturbed_s[place] = trace_.extra.undisturbed_s[row];
    }
    if (!table_.place_of_row.empty()) {
      table_.place_of_row[row] = static_cast<std::uint32_t>(place);
    }
    ++node;
  }
  return node == last ? "" : lacks(end - 1, node);
}

bool StepFiller::same_op(std::size_t a, std::size_t b) const {
  return trace_.optype[a] == trace_.optype[b] && trace_.seq_id[a] == trace_.seq_id[b];
}

std::string StepFiller::lacks(std::size_t row, std::size_t node) const {
  return fmt::format("step {}, rank {} (stage {}, dp_rank {}): no {} {}", trace_.step[row],
                     trace_.rank[row], trace_.stage[row], trace_.dp_rank[row],
                     to_text(table_.nodes[node].type), table_.nodes[node].seq);
}

std::string StepFiller::mismatch(std::size_t row, std::size_t node, std::size_t last) const {
  const auto of_row = std::tuple(trace_.optype[row], trace_.seq_id[row]);
  if (node < last && std::tuple(table_.nodes[node].type, table_.nodes[node].seq) < of_row) {
    return lacks(row, node);
  }
  if (trace_.step[row] != reference_) {
    return row_text(trace_, row) + " is not in the reference step";
  }
  // Its nodes are the operations of each stage's first worker.
  const std::size_t first = static_cast<std::size_t>(trace_.stage[row]) * table_.width();
  return fmt::format("step {}, rank {} (stage {}, dp_rank 0): no {} {}, which rank {} has",
                     reference_, table_.ranks[first], trace_.stage[row],
                     to_text(trace_.optype[row]), trace_.seq_id[row], trace_.rank[row]);
}

}  // namespace lockstep::whatif
