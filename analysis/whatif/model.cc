#include "analysis/whatif/model.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <numeric>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/stage_ops.h"
#include "base/large_pages.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr float kClamp = -0.01F;  // seconds

/// Returns how many were taken as 0 that show an error of the trace.
std::int64_t group_transfers(const OpTable& table, const DependencyGraph& graph,
                             const CommGroup& group, std::vector<float>& latest,
                             std::vector<float>& transfer) {
  std::int64_t clamped = 0;
  const std::size_t lanes = table.lanes();
  std::fill(latest.begin(), latest.end(), -std::numeric_limits<float>::infinity());
  for (const std::uint32_t m : group.members) {
    const auto start = table.start(m);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      latest[lane] = std::max(latest[lane], start[lane]);
    }
  }
  graph.scopes.take_largest(group.scope, std::span<float>(latest));
  for (const std::uint32_t m : group.members) {
    const auto start = table.start(m), duration = table.duration(m);
    float* out = transfer.data() + m * lanes;
    // A message may have been sent before its receive was posted; and what lasts no time stands for
    // a transfer that there was not, but behind a pass, which did not wait for those of others.
    const TraceOp type = table.nodes[m].type;
    const bool meets = type != TraceOp::kForwardSend && type != TraceOp::kBackwardSend;
    const bool empty_is_none =  // StragglerAnalysis takes it for a transfer
        !table.alone_s.empty() && !is_peer_comm(type);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float t = (start[lane] + duration[lane]) - latest[lane];
      clamped += t <= kClamp && meets && duration[lane] > 0 ? 1 : 0;
      out[lane] = t <= kClamp || (empty_is_none && duration[lane] == 0) ? 0.0F : t;
    }
  }
  return clamped;
}

/// Workers (stage * width + lane of a step) by global rank.
std::vector<std::size_t> by_rank(const OpTable& table) {
  std::vector<std::size_t> workers(table.ranks.size());
  std::iota(workers.begin(), workers.end(), std::size_t{0});
  std::sort(workers.begin(), workers.end(),
            [&](std::size_t a, std::size_t b) { return table.ranks[a] < table.ranks[b]; });
  return workers;
}

/// Of each node what it has its ideal time in common with (Model), a type at first.
std::vector<std::size_t> kinds_of(const OpTable& table) {
  std::vector<std::size_t> kinds;
  kinds.reserve(table.nodes.size());
  for (std::uint32_t n = 0; n < table.nodes.size(); ++n) {
    const OpNode& node = table.nodes[n];
    const bool adds_copies = table.both_ways && node.type == TraceOp::kGradsReduceScatter &&
                             node.chunk < 0;  // of two stages, not of replicas
    kinds.push_back(index(node.type) + (adds_copies               ? kTraceOpCount
                                        : table.is_beside_pass(n) ? 2 * kTraceOpCount
                                                                  : 0));
  }
  if (!table.side_by_side) {
    return kinds;
  }
  const auto make_beside = [&](std::uint32_t pass, std::uint32_t other) {
    const OpNode& node = table.nodes[pass];
    const std::size_t beside = kTraceOpCount * (1 + index(table.nodes[other].type));
    kinds[pass] = index(node.type) + beside;
    const std::size_t transfers = table.find(node.stage, pass_of(node.type).peer_comm, node.seq);
    if (transfers != OpTable::npos) {
      kinds[transfers] = index(table.nodes[transfers].type) + beside;
    }
  };
  for (const StageOps& stage : make_stage_ops(table)) {
    for (std::size_t i = 1; i < stage.compute.size(); ++i) {
      const std::uint32_t before = stage.compute[i - 1], pass = stage.compute[i];
      if (!ended_before(table, before, pass)) {
        make_beside(before, pass);
        make_beside(pass, before);
      }
    }
  }
  return kinds;
}

/// Mean of local operations of a kind, added up in the order of the trace's rows: step, rank, seq.
double mean_in_row_order(const OpTable& table, const Model& model, const NodeList& of_kind,
                         const std::vector<std::size_t>& workers) {
  const std::size_t width = table.width();
  const std::size_t lanes = table.lanes();
  std::vector<std::vector<const double*>> nodes(static_cast<std::size_t>(table.stages));
  for (const std::uint32_t n : of_kind) {
    nodes[static_cast<std::size_t>(table.nodes[n].stage)].push_back(
        model.nodelay_durations(n, lanes));
  }
  // A step's values are brought into the order of its rows first, row by row of the table.
  std::vector<std::size_t> begin(workers.size() + 1, 0);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    begin[w + 1] = begin[w] + nodes[w / width].size();
  }
  std::vector<double> step_values(begin.back());
  KahanSum sum;
  for (std::size_t s = 0; s < table.steps.size(); ++s) {
    for (std::size_t stage = 0; stage < nodes.size(); ++stage) {
      for (std::size_t k = 0; k < nodes[stage].size(); ++k) {
        const double* from = nodes[stage][k] + s * width;
        for (std::size_t d = 0; d < width; ++d) {
          step_values[begin[stage * width + d] + k] = from[d];
        }
      }
    }
    for (const std::size_t worker : workers) {
      for (std::size_t i = begin[worker]; i < begin[worker + 1]; ++i) {
        sum.add(step_values[i]);
      }
    }
  }
  return sum.count() > 0 ? sum.mean() : 0;
}

/// Median of what `values_of(node)` gives for these nodes, all lanes.
template <class T, class ValuesOf>
double median_of(const OpTable& table, const NodeList& of_kind, ValuesOf&& values_of) {
  const std::size_t lanes = table.lanes();
  std::vector<T> all;
  reserve_large(all, lanes * of_kind.size());
  for (const std::uint32_t n : of_kind) {
    const T* values = values_of(n);
    all.insert(all.end(), values, values + lanes);
  }
  return median(std::span<T>(all));
}

/// `of_kind`: in the order of the table, at least one.
double ideal_of(const OpTable& table, const DependencyGraph& graph, const Traced& traced,
                const Model& model, const NodeList& of_kind,
                const std::vector<std::size_t>& workers) {
  const std::size_t lanes = table.lanes();
  const TraceOp type = table.nodes[of_kind.front()].type;
  // A transfer by nature; but the artifact's traces do not show between whom.
  if (type == TraceOp::kLayernormGradsAllReduce && !graph.reduces_layernorm) {
    return median_of<double>(table, of_kind,
                             [&](std::uint32_t n) { return model.nodelay_durations(n, lanes); });
  }
  if (is_grouped(type) || type == TraceOp::kLayernormGradsAllReduce) {
    return static_cast<double>(static_cast<float>(median_of<float>(
        table, of_kind, [&](std::uint32_t n) { return traced.transfer_s.data() + n * lanes; })));
  }
  return mean_in_row_order(table, model, of_kind, workers);
}

}  // namespace

bool is_grouped(TraceOp type) {
  return is_p2p(type) || type == TraceOp::kEmbeddingGradsAllReduce ||
         type == TraceOp::kGradsReduceScatter || type == TraceOp::kParamsAllGather ||
         type == TraceOp::kSeparateGradsAllReduce || type == TraceOp::kOptimizerClip ||
         is_peer_comm(type);
}

Traced measure(const OpTable& table, const DependencyGraph& graph) {
  const std::size_t lanes = table.lanes();
  const std::size_t width = table.width();
  std::vector<float> earliest(lanes, std::numeric_limits<float>::infinity());
  std::vector<float> latest(lanes, -std::numeric_limits<float>::infinity());
  const int threads = threads_for(table.size());
  for_each_in_parallel(table.steps.size(), threads, [&](std::size_t step) {
    for (std::size_t n = 0; n < table.nodes.size(); ++n) {
      const auto start = table.start(n), duration = table.duration(n);
      for (std::size_t lane = step * width; lane < (step + 1) * width; ++lane) {
        earliest[lane] = std::min(earliest[lane], start[lane]);
        latest[lane] = std::max(latest[lane], start[lane] + duration[lane]);
      }
    }
  });
  Traced traced;
  for (std::size_t first = 0; first < lanes; first += width) {
    const auto offset = static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(width);
    const float begin =
        *std::min_element(earliest.begin() + offset, earliest.begin() + offset + count);
    const float end = *std::max_element(latest.begin() + offset, latest.begin() + offset + count);
    traced.step_start_s.push_back(begin);
    traced.step_s.push_back(end - begin);
  }
  resize_large(traced.transfer_s, table.size());
  std::atomic<std::int64_t> taken_as_0 = 0;
  for_each_in_parallel(graph.groups.size(), threads, [&](std::size_t group) {
    thread_local std::vector<float> scratch;
    scratch.resize(lanes);
    taken_as_0 += group_transfers(table, graph, graph.groups[group], scratch, traced.transfer_s);
  });
  traced.transfers_taken_as_0 = taken_as_0;
  return traced;
}

std::int64_t launch_delays(const OpTable& table, const DependencyGraph& graph, const Traced& traced,
                           std::uint32_t node, std::size_t first_lane, std::span<float> out) {
  const auto& predecessors = graph.predecessors[node];
  const std::size_t width = table.width();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = predecessors.empty() ? traced.step_start_s[(first_lane + i) / width]
                                  : -std::numeric_limits<float>::infinity();
  }
  for (const std::uint32_t p : predecessors) {
    const auto start = table.start(p).subspan(first_lane);
    const auto duration = table.duration(p).subspan(first_lane);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = std::max(out[i], start[i] + duration[i]);
    }
  }
  const auto start = table.start(node).subspan(first_lane);
  std::int64_t clamped = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float delay = start[i] - out[i];
    clamped += delay <= kClamp ? 1 : 0;
    out[i] = delay <= kClamp ? 0.0F : delay;
  }
  return clamped;
}

Model make_model(const OpTable& table, const DependencyGraph& graph, const Simulator& simulator,
                 const Traced& traced, std::vector<double> step_start_s) {
  const std::size_t lanes = table.lanes();
  const std::size_t steps = table.steps.size();
  Model model;
  model.step_start_s = std::move(step_start_s);
  std::uint32_t local = 0;
  for (std::uint32_t n = 0; n < table.nodes.size(); ++n) {
    model.local_row.push_back(local);
    local += graph.group_of[n] < 0 ? 1U : 0U;
  }
  resize_large(model.nodelay_duration_s, local * lanes);
  const auto as_traced = [&](std::uint32_t node, std::size_t first, std::span<double> out) {
    const float* from = graph.group_of[node] >= 0 ? traced.transfer_s.data() + node * lanes
                                                  : table.duration_s.data() + node * lanes;
    std::copy_n(from + first, out.size(), out.begin());
  };
  const auto keep_durations = [&](std::uint32_t node, std::size_t first,
                                  std::span<const double> start, std::span<const double> end) {
    if (graph.group_of[node] >= 0) {
      return;
    }
    double* to = model.nodelay_duration_s.data() + model.local_row[node] * lanes + first;
    for (std::size_t i = 0; i < start.size(); ++i) {
      to[i] = end[i] - start[i];
    }
  };
  model.nodelay = simulator.run(model.step_start_s, graph.scopes, as_traced, Simulator::NoDelays{},
                                keep_durations);

  const std::vector<std::size_t> workers = by_rank(table);
  std::map<std::size_t, NodeList> kinds;
  for (std::uint32_t n = 0; const std::size_t kind : kinds_of(table)) {
    kinds[kind].push_back(n++);
  }
  std::vector<const NodeList*> all_kinds;
  all_kinds.reserve(kinds.size());
  for (const auto& [kind, of_kind] : kinds) {
    all_kinds.push_back(&of_kind);
  }
  model.ideal_s.resize(table.nodes.size());
  for_each_in_parallel(all_kinds.size(), threads_for(table.size()), [&](std::size_t kind) {
    const double ideal_s = ideal_of(table, graph, traced, model, *all_kinds[kind], workers);
    for (const std::uint32_t n : *all_kinds[kind]) {
      model.ideal_s[n] = ideal_s;
    }
  });
  model.ideal_start_s.resize(table.nodes.size() * steps);
  model.ideal_end_s.resize(table.nodes.size() * steps);
  const auto ideal = [&](std::uint32_t node, std::size_t, std::span<double> out) {
    std::fill(out.begin(), out.end(), model.ideal_s[node]);
  };
  const auto keep_times = [&](std::uint32_t node, std::size_t first, std::span<const double> start,
                              std::span<const double> end) {
    const auto offset = static_cast<std::ptrdiff_t>(node * steps + first);
    std::copy(start.begin(), start.end(), model.ideal_start_s.begin() + offset);
    std::copy(end.begin(), end.end(), model.ideal_end_s.begin() + offset);
  };
  model.ideal =
      simulator.run(model.step_start_s, LaneScopes{}, ideal, Simulator::NoDelays{}, keep_times);
  return model;
}

}  // namespace lockstep::whatif
