#include "analysis/whatif/sequence_length.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "analysis/whatif/stage_ops.h"

namespace lockstep::whatif {
namespace {

/// Forward and backward node of each microbatch of a stage.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const OpTable& table) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::size_t> forward;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const auto key = [](const OpNode& n) {
    return n.microbatch >= 0 ? std::tuple(n.stage, n.chunk, n.microbatch)
                             : std::tuple(n.stage, -2, n.seq);
  };
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (table.nodes[n].type == TraceOp::kForwardCompute) {
      forward[key(table.nodes[n])] = n;
    }
  }
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (table.nodes[n].type != TraceOp::kBackwardCompute) {
      continue;
    }
    if (const auto found = forward.find(key(table.nodes[n])); found != forward.end()) {
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

/// SequenceLengthSign::shared. `residual(pair, step, lane)`: relative, of forward passes.
template <class Residual>
double shared_by_workers(const OpTable& table,
                         const std::vector<std::pair<std::size_t, std::size_t>>& pairs,
                         const std::vector<std::size_t>& steps, const Residual& residual) {
  const auto peers = static_cast<std::size_t>(table.peers());
  const auto dp = static_cast<std::size_t>(table.dp);
  std::map<std::int32_t, std::vector<std::size_t>> batches;  // pairs of a microbatch
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const OpNode& node = table.nodes[pairs[i].first];
    batches[microbatch_of(table, node)].push_back(i);
  }
  Moments shared;
  std::vector<double> own;
  for (const auto& [batch, members] : batches) {
    for (const std::size_t step : steps) {
      for (std::size_t d = 0; d < dp; ++d) {
        own.clear();
        for (const std::size_t i : members) {
          for (std::size_t p = 0; p < peers; ++p) {
            own.push_back(residual(pairs[i], step, d * peers + p));
          }
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

SequenceLengthSign sequence_length_sign(const OpTable& table,
                                        const std::vector<std::size_t>& steps) {
  std::vector<std::size_t> chosen = steps;
  if (chosen.empty()) {
    chosen.resize(table.steps.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  }
  const std::size_t width = table.width();
  const auto pairs = pairs_of(table);
  const auto lane_values = [&](const auto& pair, std::size_t step, std::size_t d) {
    const std::size_t lane = step * width + d;
    return std::pair(static_cast<double>(table.computes(pair.first)[lane]),
                     static_cast<double>(table.computes(pair.second)[lane]));
  };
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
  Moments all;
  for (const auto& pair : pairs) {
    for (const std::size_t step : chosen) {
      for (std::size_t d = 0; d < width; ++d) {
        const auto [forward, backward] = lane_values(pair, step, d);
        workers[worker_of(pair, d)].add(forward, backward);
        all.add(forward, backward);
      }
    }
  }
  Moments residuals;
  for (const auto& pair : pairs) {
    for (const std::size_t step : chosen) {
      for (std::size_t d = 0; d < width; ++d) {
        const auto [forward, backward] = lane_values(pair, step, d);
        const Moments& own = workers[worker_of(pair, d)];
        residuals.add(forward - own.x / own.n, backward - own.y / own.n);
      }
    }
  }
  SequenceLengthSign sign;
  if (all.n > 0 && all.x > 0) {
    sign.correlation = residuals.correlation();
    sign.pooled = all.correlation();
    sign.forward_cv = std::sqrt(residuals.xx / residuals.n) / (all.x / all.n);
  }
  if (table.stages > 1 || table.peers() > 1) {
    sign.shared = shared_by_workers(
        table, pairs, chosen, [&](const auto& pair, std::size_t step, std::size_t d) {
          const Moments& own_passes = workers[worker_of(pair, d)];
          const double mean = own_passes.x / own_passes.n;
          return mean > 0 ? lane_values(pair, step, d).first / mean - 1 : 0.0;
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
