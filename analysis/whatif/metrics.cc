#include "analysis/whatif/metrics.h"

#include <algorithm>
#include <numeric>

#include "analysis/whatif/launch_paths.h"
#include "analysis/whatif/numbers.h"
#include "analysis/whatif/values.h"

namespace lockstep::whatif {
namespace {

std::size_t dp_of(const Scene& scene) { return static_cast<std::size_t>(scene.table.dp); }
std::size_t peers_of(const Scene& scene) { return static_cast<std::size_t>(scene.table.peers()); }

std::vector<std::string> numbers(std::int32_t count) {
  std::vector<std::string> labels;
  labels.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) {
    labels.push_back(std::to_string(i));
  }
  return labels;
}

std::string label_of(TraceOp type) {
  if (type == TraceOp::kForwardSend || type == TraceOp::kForwardRecv) {
    return "forward-pp-comm";
  }
  if (type == TraceOp::kBackwardSend || type == TraceOp::kBackwardRecv) {
    return "backward-pp-comm";
  }
  return std::string(to_text(type));
}

/// The operation a stage begins its step with.
bool is_first_op(const OpNode& node) {
  return node.seq == 0 &&
         node.type == (node.stage == 0 ? TraceOp::kForwardCompute : TraceOp::kForwardRecv);
}

/// Adds a part's step times, of which `base` are the times without it.
void add_part(Decomposition& to, const std::vector<double>& times,
              const std::vector<double>& base) {
  to.ratio.push_back(pairwise_mean(times) / pairwise_mean(base));
  to.per_step.resize(times.size());
  for (std::size_t s = 0; s < times.size(); ++s) {
    to.per_step[s].push_back(times[s] / base[s]);
  }
}

/// E of the ideal timeline in which the chosen nodes are as traced, in all lanes.
template <class Chosen>
std::vector<double> ideal_with_nodes(const Scene& scene, Chosen&& chosen) {
  const Values values(scene);
  return scene.simulator
      .run(
          scene.model.step_start_s, scene.graph.scopes,
          [&](std::uint32_t node, std::size_t first, const double* from, std::span<double> out) {
            if (chosen(scene.table.nodes[node])) {
              values.add_traced(node, first, from, out);
            } else {
              values.add_ideal(node, first, from, out);
            }
          },
          /*spans=*/false)
      .optimizer;
}

/// E of the ideal timelines in each of which the chosen nodes of some lanes are as traced: of one
/// lane, or (`whole_dp_rank`) of those of one dp_rank. [step * sets + set]. The other lanes are all
/// alike but for whom they wait for, so that one of each kind is played.
template <class Chosen>
std::vector<double> ideal_with_each(const Scene& scene, bool whole_dp_rank, Chosen&& chosen) {
  const Values values(scene);
  const std::size_t own = whole_dp_rank ? static_cast<std::size_t>(scene.table.peers()) : 1;
  const std::size_t sets = scene.table.width() / own;
  // Every set stands to the others as the first one does.
  std::vector<std::uint32_t> special(own);
  std::iota(special.begin(), special.end(), 0U);
  const LaneScopes scopes = reduced(scene.graph.scopes, special);
  const std::size_t lanes = scopes.lanes;
  std::vector<double> starts;
  for (const double start : scene.model.step_start_s) {
    starts.insert(starts.end(), sets, start);
  }
  return scene.simulator
      .run(
          starts, scopes,
          [&](std::uint32_t node, std::size_t first, const double* from, std::span<double> out) {
            const float* traced = values.traced(node);
            const bool as_traced = chosen(scene.table.nodes[node]);
            std::size_t set = first / lanes;
            for (std::size_t i = 0; i < out.size();) {
              const std::size_t count = std::min((out.size() - i) / lanes, sets - set % sets);
              const double ideal = values.ideal(node, set / sets);
              for (std::size_t k = i; k < i + count * lanes; ++k) {
                out[k] = from[k] + ideal;
              }
              for (std::size_t k = 0; k < count && as_traced; ++k) {
                for (std::size_t lane = 0; lane < own; ++lane) {
                  const std::size_t at = i + k * lanes + lane;
                  out[at] = from[at] + static_cast<double>(traced[(set + k) * own + lane]);
                }
              }
              i += count * lanes;
              set += count;
            }
          },
          /*spans=*/false)
      .optimizer;
}

/// Of [step * sets + set], those of one set.
std::vector<double> of_set(const std::vector<double>& all, std::size_t sets, std::size_t set) {
  std::vector<double> out;
  for (std::size_t i = set; i < all.size(); i += sets) {
    out.push_back(all[i]);
  }
  return out;
}

/// E of T in which the launch delays of the chosen nodes (and lanes) are as traced.
template <class Chosen>
std::vector<double> nodelay_with_delays(const Scene& scene, Chosen&& chosen,
                                        std::optional<std::size_t> only_dp_rank = {}) {
  const Values values(scene);
  const auto add_delays = [&](std::uint32_t node, std::size_t first, std::span<double> starts) {
    if (!chosen(scene.table.nodes[node])) {
      return;
    }
    thread_local std::vector<float> delays;
    delays.resize(starts.size());
    launch_delays(scene.table, scene.graph, scene.traced, node, first, delays);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (!only_dp_rank || (first + i) % scene.table.width() / peers_of(scene) == *only_dp_rank) {
        starts[i] += static_cast<double>(delays[i]);
      }
    }
  };
  return scene.simulator
      .run(
          scene.model.step_start_s, scene.graph.scopes,
          [&](std::uint32_t node, std::size_t first, std::span<double> out) {
            values.nodelay(node, first, out);
          },
          add_delays, Simulator::NoSink{}, /*spans=*/false)
      .optimizer;
}

std::vector<std::string> type_labels(const Scene& scene, bool first_op) {
  std::vector<std::string> labels;
  for (const OpNode& node : scene.table.nodes) {
    labels.push_back(first_op && is_first_op(node) ? "first-op" : label_of(node.type));
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

}  // namespace

double mean_nodelay(const Scene& scene) { return pairwise_mean(scene.model.nodelay.span); }
double mean_ideal(const Scene& scene) { return pairwise_mean(scene.model.ideal.optimizer); }

double blocking_slowdown(const Scene& scene) { return mean_nodelay(scene) / mean_ideal(scene); }

double launch_slowdown(const Scene& scene) {
  return static_cast<double>(pairwise_mean(scene.traced.step_s)) /
         pairwise_mean(scene.model.nodelay.optimizer);
}

Decomposition blocking_by_optype(const Scene& scene) {
  Decomposition out{.labels = type_labels(scene, false), .ratio = {}, .per_step = {}};
  for (const std::string& label : out.labels) {
    const auto times =
        ideal_with_nodes(scene, [&](const OpNode& node) { return label_of(node.type) == label; });
    add_part(out, times, scene.model.ideal.optimizer);
  }
  return out;
}

Decomposition blocking_by_stage(const Scene& scene) {
  Decomposition out{.labels = numbers(scene.table.stages), .ratio = {}, .per_step = {}};
  for (std::int32_t stage = 0; stage < scene.table.stages; ++stage) {
    const auto times =
        ideal_with_nodes(scene, [&](const OpNode& node) { return node.stage == stage; });
    add_part(out, times, scene.model.ideal.optimizer);
  }
  return out;
}

Decomposition blocking_by_dp_rank(const Scene& scene) {
  Decomposition out{.labels = numbers(scene.table.dp), .ratio = {}, .per_step = {}};
  const auto all =
      ideal_with_each(scene, /*whole_dp_rank=*/true, [](const OpNode&) { return true; });
  for (std::size_t d = 0; d < dp_of(scene); ++d) {
    add_part(out, of_set(all, dp_of(scene), d), scene.model.ideal.optimizer);
  }
  return out;
}

Decomposition blocking_by_worker(const Scene& scene) {
  Decomposition out;
  for (std::int32_t stage = 0; stage < scene.table.stages; ++stage) {
    const auto all = ideal_with_each(scene, /*whole_dp_rank=*/false,
                                     [&](const OpNode& node) { return node.stage == stage; });
    for (std::size_t lane = 0; lane < scene.table.width(); ++lane) {
      out.labels.push_back(std::to_string(scene.table.rank(stage, lane)));
      add_part(out, of_set(all, scene.table.width(), lane), scene.model.ideal.optimizer);
    }
  }
  return out;
}

std::vector<double> approximate_by_worker(const Decomposition& by_dp_rank,
                                          const Decomposition& by_stage) {
  std::vector<double> out;
  for (const double stage : by_stage.ratio) {
    for (const double dp : by_dp_rank.ratio) {
      out.push_back(std::min(dp, stage));
    }
  }
  return out;
}

Decomposition launch_by_optype(const Scene& scene) {
  Decomposition out{.labels = type_labels(scene, true), .ratio = {}, .per_step = {}};
  for (const std::string& label : out.labels) {
    const auto times = nodelay_with_delays(scene, [&](const OpNode& node) {
      return (is_first_op(node) ? "first-op" : label_of(node.type)) == label;
    });
    add_part(out, times, scene.model.nodelay.optimizer);
  }
  return out;
}

Decomposition launch_by_stage(const Scene& scene) {
  Decomposition out{.labels = numbers(scene.table.stages), .ratio = {}, .per_step = {}};
  for (std::int32_t stage = 0; stage < scene.table.stages; ++stage) {
    const auto times =
        nodelay_with_delays(scene, [&](const OpNode& node) { return node.stage == stage; });
    add_part(out, times, scene.model.nodelay.optimizer);
  }
  return out;
}

Decomposition launch_by_dp_rank(const Scene& scene) {
  // Below it everything is simulated, which is exact to the last bit.
  constexpr std::size_t kFewDpRanks = 64;
  Decomposition out{.labels = numbers(scene.table.dp), .ratio = {}, .per_step = {}};
  if (peers_of(scene) == 1 && dp_of(scene) > kFewDpRanks &&
      dp_of(scene) > launch_paths_cost(scene)) {
    for (const std::vector<double>& times : launch_times_by_paths(scene)) {
      add_part(out, times, scene.model.nodelay.optimizer);
    }
    return out;
  }
  for (std::size_t d = 0; d < dp_of(scene); ++d) {
    const auto times = nodelay_with_delays(
        scene, [](const OpNode&) { return true; }, d);
    add_part(out, times, scene.model.nodelay.optimizer);
  }
  return out;
}

Contribution no_contribution(const Scene& scene) {
  return {.tori = mean_nodelay(scene), .tideal = pairwise_mean(scene.model.ideal.span)};
}

Contribution contribution(const Scene& scene, const std::vector<bool>& in_w) {
  const Values values(scene);
  const std::size_t width = scene.table.width();
  std::vector<std::vector<std::size_t>> members(in_w.size() / width);  ///< lanes of W by stage
  for (std::size_t worker = 0; worker < in_w.size(); ++worker) {
    if (in_w[worker]) {
      members[worker / width].push_back(worker % width);
    }
  }
  // `w`: what the workers of W do, `others`: what the others do. Lanes come as whole steps.
  const auto mixed = [&](auto&& w, auto&& others) {
    return pairwise_mean(
        scene.simulator
            .run(scene.model.step_start_s, scene.graph.scopes,
                 [&](std::uint32_t node, std::size_t first, std::span<double> out) {
                   const auto& own =
                       members[static_cast<std::size_t>(scene.table.nodes[node].stage)];
                   if (own.size() == width) {
                     w(node, first, out);
                     return;
                   }
                   others(node, first, out);
                   if (own.empty()) {
                     return;
                   }
                   thread_local std::vector<double> scratch;
                   scratch.resize(out.size());
                   w(node, first, std::span<double>(scratch));
                   for (std::size_t step = 0; step < out.size(); step += width) {
                     for (const std::size_t lane : own) {
                       out[step + lane] = scratch[step + lane];
                     }
                   }
                 })
            .span);
  };
  const auto ideal = [&](std::uint32_t node, std::size_t first, std::span<double> out) {
    values.ideal(node, first, out);
  };
  const auto nodelay = [&](std::uint32_t node, std::size_t first, std::span<double> out) {
    values.nodelay(node, first, out);
  };
  Contribution c = no_contribution(scene);
  c.trem = mixed(ideal, nodelay);
  c.tadd = mixed(nodelay, ideal);
  if (c.tori != c.tideal) {
    c.rem = (c.tori - *c.trem) / (c.tori - c.tideal);
    c.add = (*c.tadd - c.tideal) / (c.tori - c.tideal);
  }
  return c;
}

std::vector<bool> last_stage(const OpTable& table) {
  std::vector<bool> in_w(table.ranks.size(), false);
  std::fill(in_w.end() - static_cast<std::ptrdiff_t>(table.width()), in_w.end(), true);
  return in_w;
}

std::vector<bool> slowest_workers(const OpTable& table, const std::vector<double>& by_worker) {
  std::vector<std::size_t> workers(table.ranks.size());
  std::iota(workers.begin(), workers.end(), std::size_t{0});
  std::sort(workers.begin(), workers.end(), [&](std::size_t a, std::size_t b) {
    return by_worker[a] != by_worker[b] ? by_worker[a] > by_worker[b]
                                        : table.ranks[a] < table.ranks[b];
  });
  std::vector<bool> in_w(workers.size(), false);
  for (std::size_t i = 0; i < (3 * workers.size() + 99) / 100; ++i) {
    in_w[workers[i]] = true;
  }
  return in_w;
}

StepTimes simulate_edited(const Scene& scene, const Edit& edit) {
  const Values values(scene);
  return scene.simulator.run(scene.model.step_start_s, scene.graph.scopes,
                             [&](std::uint32_t node, std::size_t first, std::span<double> out) {
                               values.nodelay(node, first, out);
                               edit(node, first, out);
                             });
}

}  // namespace lockstep::whatif
