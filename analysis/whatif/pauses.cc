#include "analysis/whatif/pauses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/peers.h"
#include "analysis/whatif/stage_ops.h"
#include "base/large_pages.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kShortest = 0.1;  // seconds
constexpr double kDeviations = 6;  // medians of the absolute deviation
constexpr double kNearly = 2.0 / 3;
constexpr double kPart = 0.1;  // of a pause, the rest of which the worker was waiting
constexpr double kAlike = 0.8;
constexpr double kRelated = 0.25;
constexpr double kSpread = 0.6;  // of the workers that even pauses would be on
constexpr double kMostOnOne = 0.75;

using Nodes = std::vector<std::uint32_t>;

/// What computes; clipping takes the norm of the gradients.
bool may_pause(TraceOp type) {
  return is_compute(type) || type == TraceOp::kOptimizer || type == TraceOp::kOptimizerClip;
}

/// What a simulation may change of them.
std::span<const float> times_of(const Scene& scene, std::size_t node) {
  const OpTable& table = scene.table;
  if (is_compute(table.nodes[node].type)) {
    return table.computes(node);
  }
  return scene.graph.group_of[node] < 0 ? table.duration(node)
                                        : std::span<const float>(scene.traced.transfer_s)
                                              .subspan(node * table.lanes(), table.lanes());
}

/// Those of each stage, kind and chunk.
std::vector<Nodes> alike_passes(const OpTable& table) {
  std::map<std::tuple<std::int32_t, TraceOp, std::int32_t>, Nodes> groups;
  for (std::uint32_t n = 0; n < table.nodes.size(); ++n) {
    const OpNode& node = table.nodes[n];
    if (may_pause(node.type)) {
      groups[{node.stage, node.type, node.chunk}].push_back(n);
    }
  }
  std::vector<Nodes> out;
  out.reserve(groups.size());
  for (auto& [key, nodes] : groups) {
    out.push_back(std::move(nodes));
  }
  return out;
}

struct Limit {
  double middle = 0, deviation = 0;  ///< median, and that of the absolute deviations

  double margin(double shortest) const { return std::max(shortest, kDeviations * deviation); }
};

Limit limit_of(const Scene& scene, const Nodes& nodes) {
  std::vector<float> values;
  reserve_large(values, scene.table.lanes() * nodes.size());
  for (const std::uint32_t n : nodes) {
    const auto own = times_of(scene, n);
    values.insert(values.end(), own.begin(), own.end());
  }
  Limit limit;
  limit.middle = median(std::span<float>(values));
  for (float& value : values) {
    value = static_cast<float>(std::abs(static_cast<double>(value) - limit.middle));
  }
  limit.deviation = median(std::span<float>(values));
  return limit;
}

/// What the worker of a lane usually takes for these passes: in the step, in all if one is alone.
double own_usual(const Scene& scene, const Nodes& nodes, std::size_t lane,
                 std::vector<float>& scratch) {
  scratch.clear();
  if (nodes.size() > 1) {
    for (const std::uint32_t n : nodes) {
      scratch.push_back(times_of(scene, n)[lane]);
    }
  } else {
    const auto own = times_of(scene, nodes.front());
    const std::size_t width = scene.table.width();
    for (std::size_t at = lane % width; at < own.size(); at += width) {
      scratch.push_back(own[at]);
    }
  }
  return static_cast<double>(usual(std::span<float>(scratch)));
}

bool comes_first(const Outlier& a, const Outlier& b) {
  return std::tie(a.node, a.lane) < std::tie(b.node, b.lane);
}

/// The median excess. PRECONDITION: there are any.
double typical(const std::vector<Outlier>& outliers) {
  std::vector<double> values;
  values.reserve(outliers.size());
  for (const Outlier& outlier : outliers) {
    values.push_back(outlier.excess_s);
  }
  return median(std::span<double>(values));
}

/// Whether the smaller is so large a part of the larger.
bool are_within(double a, double b, double part) { return std::min(a, b) >= part * std::max(a, b); }

/// The passes that are alike, and what is usual for them.
class Passes {
 public:
  explicit Passes(const Scene& scene)
      : scene_(scene),
        table_(scene.table),
        groups_(alike_passes(scene.table)),
        limits_(groups_.size()),
        middle_of_(scene.table.nodes.size(), 0.0) {
    for_each_group([&](std::size_t i) {
      limits_[i] = limit_of(scene, groups_[i]);
      for (const std::uint32_t n : groups_[i]) {
        middle_of_[n] = limits_[i].middle;
      }
    });
    for (const Nodes& nodes : groups_) {
      for (const std::uint32_t n : nodes) {
        if (is_compute(table_.nodes[n].type)) {
          batches_[stage_batch_of(table_.nodes[n])].push_back(n);
        }
      }
    }
  }

  /// With an excess of `shortest` seconds at least.
  OutlyingPasses outlying(double shortest) const {
    std::vector<OutlyingPasses> found(groups_.size());
    for_each_group([&](std::size_t i) {
      found[i] = outlying(groups_[i], limits_[i].middle, limits_[i].margin(shortest));
    });
    OutlyingPasses out;
    for (const OutlyingPasses& own : found) {
      out.outliers.insert(out.outliers.end(), own.outliers.begin(), own.outliers.end());
      out.nearly += own.nearly;
    }
    std::ranges::sort(out.outliers, comes_first);
    return out;
  }

 private:
  template <class Do>
  void for_each_group(Do&& each) const {
    for_each_in_parallel(groups_.size(), threads_for(table_.size()), each);
  }

  OutlyingPasses outlying(const Nodes& nodes, double middle, double margin) const {
    const double nearly = kNearly * margin;
    std::map<std::size_t, Nodes> far;  // by lane
    for (const std::uint32_t n : nodes) {
      const auto own = times_of(scene_, n);
      for (std::size_t lane = 0; lane < own.size(); ++lane) {
        if (static_cast<double>(own[lane]) > middle + nearly) {
          far[lane].push_back(n);
        }
      }
    }
    OutlyingPasses out;
    std::vector<float> scratch;
    for (const auto& [lane, passes] : far) {
      const double reference = std::max(middle, own_usual(scene_, nodes, lane, scratch));
      for (const std::uint32_t n : passes) {
        const double excess = static_cast<double>(times_of(scene_, n)[lane]) - reference;
        if (excess <= nearly || has_long_microbatch(n, lane) || is_everybodys(n, lane, nearly)) {
          continue;
        }
        if (excess > margin) {
          out.outliers.push_back({n, lane, excess});
        } else {
          ++out.nearly;
        }
      }
    }
    return out;
  }

  double excess_of(std::uint32_t pass, std::size_t lane) const {
    return static_cast<double>(table_.computes(pass)[lane]) - middle_of_[pass];
  }

  /// Whether another pass of the same microbatch is longer, too, by a factor that is not altogether
  /// different; but two pauses last about as long, whatever the passes take.
  bool has_long_microbatch(std::uint32_t pass, std::size_t lane) const {
    if (!is_compute(table_.nodes[pass].type)) {
      return false;
    }
    const double factor = excess_of(pass, lane) / middle_of_[pass];
    const Nodes& batch = batches_.at(stage_batch_of(table_.nodes[pass]));
    return std::ranges::any_of(batch, [&](std::uint32_t other) {
      const double its = excess_of(other, lane) / middle_of_[other];
      const bool two_pauses = are_within(excess_of(pass, lane), excess_of(other, lane), kAlike) &&
                              !are_within(factor, its, kAlike);
      return table_.nodes[other].type != table_.nodes[pass].type &&
             are_within(factor, its, kRelated) && !two_pauses;
    });
  }

  /// Where all of a step wait for the one that pauses in clipping it is not known who does.
  bool is_everybodys(std::uint32_t node, std::size_t lane, double excess) const {
    if (is_compute(table_.nodes[node].type) || table_.width() == 1) {
      return false;
    }
    const auto step = times_of(scene_, node).subspan(lane - lane % table_.width(), table_.width());
    std::vector<float> scratch(step.begin(), step.end());
    return static_cast<double>(usual(std::span<float>(scratch))) > middle_of_[node] + excess;
  }

  const Scene& scene_;
  const OpTable& table_;
  std::vector<Nodes> groups_;
  std::vector<Limit> limits_;      // of groups_
  std::vector<double> middle_of_;  // of nodes
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Nodes> batches_;
};

std::size_t worker_of(const OpTable& table, const Outlier& outlier) {
  return static_cast<std::size_t>(table.nodes[outlier.node].stage) * table.width() +
         outlier.lane % table.width();
}

/// Of all, and of those that take turns with them, which are as much longer.
std::vector<Outlier> with_those_beside(const OpTable& table, std::vector<Outlier> outliers) {
  for (std::size_t i = outliers.size(); i-- > 0 && !table.turns_with.empty();) {
    const Outlier& own = outliers[i];
    if (const std::uint32_t other = table.turns_with[own.node]; other != OpTable::kAlone) {
      outliers.push_back({other, own.lane, own.excess_s});
    }
  }
  std::ranges::sort(outliers, comes_first);
  return outliers;
}

/// What pauses make longer that are spread evenly; clipping is short.
bool is_stretched(TraceOp type) { return is_compute(type) || type == TraceOp::kOptimizer; }

/// The pass before each of the same stage; OpTable::npos of the first.
std::vector<std::size_t> passes_before(const OpTable& table) {
  std::vector<std::size_t> out(table.nodes.size(), OpTable::npos);
  for (const StageOps& stage : make_stage_ops(table)) {
    for (std::size_t i = 1; i < stage.compute.size(); ++i) {
      out[stage.compute[i]] = stage.compute[i - 1];
    }
  }
  return out;
}

/// By how much pauses make computation longer that is never kept waiting, as a share. A pause that
/// begins while a worker waits may last into its next pass, so that those count alone that begin
/// where the one before ends.
double share_of(const OpTable& table, const std::vector<Outlier>& outliers) {
  const std::vector<std::size_t> before = passes_before(table);
  const double slack = kPart * typical(outliers);
  const auto follows_at_once = [&](std::size_t node, std::size_t lane) {
    const std::size_t last = before[node];
    return last != OpTable::npos &&
           static_cast<double>(table.start(node)[lane] - table.start(last)[lane] -
                               table.duration(last)[lane]) <= slack;
  };
  double all = 0, excess = 0;
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    for (std::size_t lane = 0; lane < table.lanes() && before[n] != OpTable::npos; ++lane) {
      all += follows_at_once(n, lane) ? static_cast<double>(table.computes(n)[lane]) : 0;
    }
  }
  for (const Outlier& outlier : outliers) {
    excess += follows_at_once(outlier.node, outlier.lane) ? outlier.excess_s : 0;
  }
  return excess > 0 ? excess / (all - excess) : 0;
}

std::vector<double> shared_by_all(const OpTable& table, const std::vector<Outlier>& outliers) {
  std::vector<std::vector<double>> of_step(table.steps.size());
  for (const Outlier& outlier : outliers) {
    std::vector<double>& own = of_step[outlier.lane / table.width()];
    own.resize(table.ranks.size());
    own[worker_of(table, outlier)] += outlier.excess_s;
  }
  std::vector<double> out;
  out.reserve(of_step.size());
  for (std::vector<double>& own : of_step) {
    out.push_back(own.empty() ? 0 : usual(std::span<double>(own)));
  }
  return out;
}

/// Whether they are more than the nearly outlying; in several steps, where there are; and on as
/// many workers as they would be if all were paused alike, not on one or a few again and again.
bool move_over_workers(const OpTable& table, const OutlyingPasses& found) {
  std::vector<double> counts(table.ranks.size(), 0.0);
  std::vector<bool> in_step(table.steps.size(), false);
  for (const Outlier& outlier : found.outliers) {
    counts[worker_of(table, outlier)] += 1;
    in_step[outlier.lane / table.width()] = true;
  }
  const auto all = static_cast<double>(found.outliers.size());
  const auto workers = static_cast<double>(counts.size());
  // all^2 / squares are so many workers if all have as many. Of draws at random the squares are
  // all + all (all - 1) / workers in the mean.
  const double squares = std::inner_product(counts.begin(), counts.end(), counts.begin(), 0.0);
  const double most = *std::ranges::max_element(counts);
  return found.outliers.size() > found.nearly && most < all && most <= kMostOnOne * all &&
         std::ranges::count(in_step, true) >= std::min<std::ptrdiff_t>(2, std::ssize(in_step)) &&
         all * all / squares >= kSpread * workers * all / (workers + all - 1);
}

}  // namespace

OutlyingPasses outlying_passes(const Scene& scene) {
  const Passes passes(scene);
  OutlyingPasses out = passes.outlying(kShortest);
  out.moving = move_over_workers(scene.table, out);
  if (out.moving) {
    out.outliers = passes.outlying(kPart * typical(out.outliers)).outliers;
  }
  return out;
}

void take_off(std::span<const Outlier> outliers, std::uint32_t node, std::size_t first,
              std::span<double> values) {
  for (auto at = std::ranges::lower_bound(outliers, Outlier{node, first}, comes_first);
       at != outliers.end() && at->node == node && at->lane < first + values.size(); ++at) {
    double& value = values[at->lane - first];
    value = std::max(0.0, value - at->excess_s);
  }
}

Pauses find_pauses(const Scene& scene) {
  const OpTable& table = scene.table;
  Pauses out;
  OutlyingPasses found = outlying_passes(scene);
  out.moving = found.moving;
  out.outliers = std::move(found.outliers);
  out.planned = {"planned-gc",
                 fmt::format("collect garbage on all workers at once: {} passes are outliers",
                             out.outliers.size()),
                 mean_nodelay(scene), 0};
  out.typical_s = out.outliers.empty() ? 0 : typical(out.outliers);
  out.shared_s = shared_by_all(table, out.outliers);
  if (out.outliers.empty()) {
    out.without = scene.model.nodelay;
    return out;
  }
  std::vector<bool> has(table.ranks.size(), false);
  for (const Outlier& outlier : out.outliers) {
    has[worker_of(table, outlier)] = true;
  }
  out.workers = static_cast<std::size_t>(std::count(has.begin(), has.end(), true));
  const std::vector<Outlier> longer = with_those_beside(table, out.outliers);
  out.without =
      simulate_edited(scene, [&](std::uint32_t node, std::size_t first, std::span<double> values) {
        take_off(longer, node, first, values);
      });
  const double share = share_of(table, out.outliers);
  const StepTimes together =
      simulate_edited(scene, [&](std::uint32_t node, std::size_t first, std::span<double> values) {
        take_off(longer, node, first, values);
        if (is_stretched(table.nodes[node].type)) {
          for (double& value : values) {
            value *= 1 + share;
          }
        }
      });
  const double now = out.planned.step_time_s;
  const double shared = std::accumulate(out.shared_s.begin(), out.shared_s.end(), 0.0) /
                        static_cast<double>(out.shared_s.size());
  out.planned.step_time_s =
      std::max(pairwise_mean(together.span), pairwise_mean(out.without.span) + shared);
  out.planned.saves = 1 - out.planned.step_time_s / now;
  return out;
}

}  // namespace lockstep::whatif
