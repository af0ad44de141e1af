#include "analysis/whatif/remedies.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/replacement.h"
#include "analysis/whatif/stage_ops.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

Remedy priced(const Scene& scene, std::string name, std::string description, const Edit& edit) {
  const double now = mean_nodelay(scene);
  const double then = pairwise_mean(simulate_edited(scene, edit).span);
  return {std::move(name), std::move(description), then, 1 - then / now};
}

/// Mean time of a type on each stage, and over all of them.
struct StageMeans {
  std::vector<double> stage;
  double all = 0;
};

StageMeans stage_means(const OpTable& table, TraceOp type,
                       std::span<const float> (OpTable::*times)(std::size_t) const) {
  std::vector<double> sum(static_cast<std::size_t>(table.stages), 0.0), count = sum;
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (table.nodes[n].type == type) {
      const auto stage = static_cast<std::size_t>(table.nodes[n].stage);
      for (const float d : (table.*times)(n)) {
        sum[stage] += static_cast<double>(d);
        count[stage] += 1;
      }
    }
  }
  StageMeans means{std::vector<double>(sum.size(), 0.0)};
  for (std::size_t s = 0; s < sum.size(); ++s) {
    means.stage[s] = count[s] > 0 ? sum[s] / count[s] : 0;
  }
  const double total = std::accumulate(count.begin(), count.end(), 0.0);
  means.all = total > 0 ? std::accumulate(sum.begin(), sum.end(), 0.0) / total : 0;
  return means;
}

/// By how much the work of each (microbatch, dp_rank) changes when those of a step are dealt out
/// anew.
class Deal {
 public:
  explicit Deal(const OpTable& table)
      : table_(table),
        dp_(static_cast<std::size_t>(table.dp)),
        peers_(static_cast<std::size_t>(table.peers())) {
    std::map<std::int32_t, std::vector<std::size_t>> nodes;
    for (std::size_t n = 0; n < table.nodes.size(); ++n) {
      const OpNode& node = table.nodes[n];
      if (node.type == TraceOp::kForwardCompute) {
        nodes[microbatch_of(table, node)].push_back(n);
      }
    }
    for (const auto& [batch, own] : nodes) {
      row_of_[batch] = row_of_.size();
    }
    const StageMeans means = stage_means(table, TraceOp::kForwardCompute, &OpTable::computes);
    factors_.resize(table.steps.size());
    for_each_in_parallel(factors_.size(), threads_for(table.size()), [&](std::size_t s) {
      const std::vector<double> weights = weights_of(table, nodes, means, s);
      const std::vector<std::size_t> source = deal(weights);
      factors_[s].resize(weights.size());
      for (std::size_t at = 0; at < weights.size(); ++at) {
        factors_[s][at] = weights[at] > 0 ? weights[source[at]] / weights[at] : 1;
      }
    });
  }

  /// The row of a pass's microbatch; nothing if that has no forward pass.
  std::optional<std::size_t> row_of(const OpNode& pass) const {
    const auto row = row_of_.find(microbatch_of(table_, pass));
    return row == row_of_.end() ? std::nullopt : std::optional(row->second);
  }
  /// By how much the work of such a row changes in a lane.
  double factor(std::optional<std::size_t> row, std::size_t lane) const {
    const std::size_t dp_rank = lane / peers_;  // of all steps
    return row ? factors_[dp_rank / dp_][*row * dp_ + dp_rank % dp_] : 1;
  }

 private:
  /// A microbatch's weight: its forward times relative to its stage's mean, over all stages.
  /// [microbatch * dp + dp_rank].
  std::vector<double> weights_of(const OpTable& table,
                                 const std::map<std::int32_t, std::vector<std::size_t>>& nodes,
                                 const StageMeans& means, std::size_t step) const {
    std::vector<double> weights;
    weights.reserve(nodes.size() * dp_);
    for (const auto& [batch, own] : nodes) {
      for (std::size_t d = 0; d < dp_; ++d) {
        double weight = 0;
        for (const std::size_t n : own) {
          const double mean = means.stage[static_cast<std::size_t>(table.nodes[n].stage)];
          for (std::size_t p = 0; p < peers_ && mean > 0; ++p) {
            weight += static_cast<double>(table.computes(n)[(step * dp_ + d) * peers_ + p]) / mean;
          }
        }
        weights.push_back(weight / static_cast<double>(own.size() * peers_));
      }
    }
    return weights;
  }

  /// Greedy: the heaviest first, to the rank with the least so far that has room. Whose each then
  /// is.
  std::vector<std::size_t> deal(const std::vector<double>& weights) const {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    using Rank = std::pair<double, std::size_t>;  // load, dp_rank
    std::priority_queue<Rank, std::vector<Rank>, std::greater<>> ranks;
    for (std::size_t d = 0; d < dp_; ++d) {
      ranks.emplace(0.0, d);
    }
    std::vector<std::size_t> used(dp_, 0), source(weights.size());
    const std::size_t room = weights.size() / dp_;
    for (const std::size_t from : order) {
      const auto [load, best] = ranks.top();
      ranks.pop();
      source[used[best]++ * dp_ + best] = from;
      if (used[best] < room) {
        ranks.emplace(load + weights[from], best);
      }
    }
    return source;
  }

  const OpTable& table_;
  std::size_t dp_, peers_;
  std::map<std::int32_t, std::size_t> row_of_;
  std::vector<std::vector<double>> factors_;  ///< [step][microbatch * dp + dp_rank]
};

}  // namespace

Remedy replace_worker(const Scene& scene, std::size_t worker) {
  return replace_workers(scene, {&worker, 1});
}

Remedy replace_workers(const Scene& scene, std::span<const std::size_t> workers) {
  const Replacement replacement(scene, workers);
  const Edit edit = [&](std::uint32_t node, std::size_t first, std::span<double> out) {
    replacement.edit(node, first, out);
  };
  std::vector<std::int32_t> ranks;
  for (const std::size_t worker : workers) {
    ranks.push_back(scene.table.ranks[worker]);
  }
  const bool has_peers = scene.table.width() > 1;  // else see Replacement
  return workers.size() == 1
             ? priced(scene, "replace-worker",
                      fmt::format("replace rank {} by a worker like {}", ranks.front(),
                                  has_peers ? "the others of its stage" : "the mean of all stages"),
                      edit)
             : priced(
                   scene, "replace-workers",
                   fmt::format("replace ranks {} by workers like {}", fmt::join(ranks, ", "),
                               has_peers ? "the others of their stages" : "the mean of all stages"),
                   edit);
}

Remedy rebalance_stages(const Scene& scene) {
  std::array<StageMeans, kTraceOpCount> means;
  for (const TracePass& pass : kTracePasses) {
    means[index(pass.compute)] = stage_means(scene.table, pass.compute, &OpTable::duration);
  }
  return priced(scene, "rebalance-stages", "give every stage the same amount of computation",
                [&](std::uint32_t node, std::size_t, std::span<double> out) {
                  const OpNode& own = scene.table.nodes[node];
                  if (!is_compute(own.type)) {
                    return;
                  }
                  const StageMeans& m = means[index(own.type)];
                  const double mean = m.stage[static_cast<std::size_t>(own.stage)];
                  for (double& value : out) {
                    value *= mean > 0 ? m.all / mean : 1;
                  }
                });
}

Remedy redistribute_sequences(const Scene& scene) {
  const Deal deal(scene.table);
  return priced(scene, "redistribute-sequences",
                "deal the microbatches out so that all dp_ranks have the same work",
                [&](std::uint32_t node, std::size_t first, std::span<double> out) {
                  const OpTable& table = scene.table;
                  if (!is_compute(table.nodes[node].type)) {
                    return;
                  }
                  const std::uint32_t other =
                      table.turns_with.empty() ? OpTable::kAlone : table.turns_with[node];
                  const auto row = deal.row_of(table.nodes[node]);
                  if (other == OpTable::kAlone) {
                    for (std::size_t i = 0; i < out.size(); ++i) {
                      out[i] *= deal.factor(row, first + i);
                    }
                    return;
                  }
                  const auto add = [&](std::uint32_t pass, std::optional<std::size_t> its_row) {
                    const auto computes = table.computes(pass);
                    for (std::size_t i = 0; i < out.size(); ++i) {
                      out[i] += static_cast<double>(computes[first + i]) *
                                (deal.factor(its_row, first + i) - 1);
                    }
                  };
                  add(node, row);
                  add(other, deal.row_of(table.nodes[other]));
                });
}

Remedy faster_links(const Scene& scene, Links links) {
  const auto goes_over = [links](TraceOp type) {
    switch (links) {
      case Links::kBetweenStages:
        return is_p2p(type);
      case Links::kPeers:
        return is_peer_comm(type);
      case Links::kReplicas:
        return type == TraceOp::kParamsAllGather || type == TraceOp::kGradsReduceScatter ||
               type == TraceOp::kSeparateGradsAllReduce;
    }
    return false;
  };
  constexpr std::array<std::array<const char*, 2>, 3> kTexts = {
      {{"faster-links-pp", "links between stages twice as fast"},
       {"faster-links-tp",
        "links of the tensor-, context- and expert-parallel groups twice as fast"},
       {"faster-links-dp", "links of the data-parallel groups twice as fast"}}};
  const auto& [name, description] = kTexts[static_cast<std::size_t>(links)];
  return priced(scene, name, description,
                [&](std::uint32_t node, std::size_t, std::span<double> out) {
                  if (goes_over(scene.table.nodes[node].type)) {
                    for (double& value : out) {
                      value /= 2;
                    }
                  }
                });
}

}  // namespace lockstep::whatif
