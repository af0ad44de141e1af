#include "analysis/whatif/sequence_length.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/whatif/pauses.h"
#include "analysis/whatif/stage_ops.h"

namespace lockstep::whatif {
namespace {

/// Forward and backward node of each microbatch of a stage.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const OpTable& table) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::size_t> forward;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (table.nodes[n].type == TraceOp::kForwardCompute) {
      forward[stage_batch_of(table.nodes[n])] = n;
    }
  }
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (table.nodes[n].type != TraceOp::kBackwardCompute) {
      continue;
    }
    if (const auto found = forward.find(stage_batch_of(table.nodes[n])); found != forward.end()) {
      pairs.emplace_back(found->second, n);
    }
  }
  return pairs;
}

/// Sums of pairs (x, y), from which their correlation follows.
struct Moments {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  double correlation() const {
    const double vx = xx - x * x / n, vy = yy - y * y / n;
    const double scale = 1e-12 * (xx + yy);
    return n < 3 || vx <= scale || vy <= scale ? 0 : (xy - x * y / n) / std::sqrt(vx * vy);
  }
};

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// What the passes of a node compute in a step, outlying ones without their excess.
void values_of(const OpTable& table, std::span<const Outlier> outliers, std::size_t node,
               std::size_t step, std::vector<double>& out) {
  const std::size_t first = step * table.width();
  const auto own = table.computes(node).subspan(first, table.width());
  out.assign(own.begin(), own.end());
  take_off(outliers, static_cast<std::uint32_t>(node), first, out);
}

/// SequenceLengthSign::shared. `residuals(pair, step, out)`: relative, of forward passes.
template <class Residuals>
double shared_by_workers(const OpTable& table, const Pairs& pairs,
                         const std::vector<std::size_t>& steps, const Residuals& residuals) {
  const auto peers = static_cast<std::size_t>(table.peers());
  const auto dp = static_cast<std::size_t>(table.dp);
  std::map<std::int32_t, std::vector<std::size_t>> batches;  // pairs of a microbatch
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const OpNode& node = table.nodes[pairs[i].first];
    batches[microbatch_of(table, node)].push_back(i);
  }
  Moments shared;
  std::vector<double> own;
  std::vector<std::vector<double>> rows;
  for (const auto& [batch, members] : batches) {
    rows.resize(members.size());
    for (const std::size_t step : steps) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        residuals(pairs[members[i]], step, rows[i]);
      }
      for (std::size_t d = 0; d < dp; ++d) {
        own.clear();
        for (const std::vector<double>& row : rows) {
          own.insert(own.end(), row.data() + d * peers, row.data() + (d + 1) * peers);
        }
        const double sum = std::accumulate(own.begin(), own.end(), 0.0);
        for (const double each : own) {
          shared.add(each, own.size() > 1 ? (sum - each) / static_cast<double>(own.size() - 1) : 0);
        }
      }
    }
  }
  return shared.correlation();
}

}  // namespace

SequenceLengthSign sequence_length_sign(const OpTable& table, const std::vector<std::size_t>& steps,
                                        std::span<const Outlier> outliers) {
  std::vector<std::size_t> chosen = steps;
  if (chosen.empty()) {
    chosen.resize(table.steps.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  }
  const std::size_t width = table.width();
  const Pairs pairs = pairs_of(table);
  std::vector<double> forward, backward;
  // The chunks of a stage need not be as heavy as each other.
  std::size_t chunks = 1;
  for (const auto& pair : pairs) {
    chunks = std::max(chunks, static_cast<std::size_t>(table.nodes[pair.first].chunk + 1));
  }
  std::vector<Moments> workers(table.ranks.size() * chunks);
  const auto worker_of = [&](const auto& pair, std::size_t d) {
    const OpNode& node = table.nodes[pair.first];
    const auto stage = static_cast<std::size_t>(node.stage);
    return (stage * width + d) * chunks + static_cast<std::size_t>(std::max(0, node.chunk));
  };
  const auto for_all = [&](const auto& each) {
    for (const auto& pair : pairs) {
      for (const std::size_t step : chosen) {
        values_of(table, outliers, pair.first, step, forward);
        values_of(table, outliers, pair.second, step, backward);
        for (std::size_t d = 0; d < width; ++d) {
          each(worker_of(pair, d), forward[d], backward[d]);
        }
      }
    }
  };
  Moments all, residuals;
  for_all([&](std::size_t worker, double own_forward, double own_backward) {
    workers[worker].add(own_forward, own_backward);
    all.add(own_forward, own_backward);
  });
  for_all([&](std::size_t worker, double own_forward, double own_backward) {
    const Moments& own = workers[worker];
    residuals.add(own_forward - own.x / own.n, own_backward - own.y / own.n);
  });
  SequenceLengthSign sign;
  if (all.n > 0 && all.x > 0) {
    sign.correlation = residuals.correlation();
    sign.pooled = all.correlation();
    sign.forward_cv = std::sqrt(residuals.xx / residuals.n) / (all.x / all.n);
  }
  if (table.stages > 1 || table.peers() > 1) {
    sign.shared = shared_by_workers(
        table, pairs, chosen, [&](const auto& pair, std::size_t step, std::vector<double>& out) {
          values_of(table, outliers, pair.first, step, out);
          for (std::size_t d = 0; d < width; ++d) {
            const Moments& own_passes = workers[worker_of(pair, d)];
            const double mean = own_passes.x / own_passes.n;
            out[d] = mean > 0 ? out[d] / mean - 1 : 0.0;
          }
        });
  }
  return sign;
}

bool shows_sequence_length(const SequenceLengthSign& sign) {
  constexpr double kCorrelation = 0.9, kVariation = 0.05, kShared = 0.5;
  return sign.correlation >= kCorrelation && sign.forward_cv >= kVariation &&
         sign.shared >= kShared;
}

}  // namespace lockstep::whatif
