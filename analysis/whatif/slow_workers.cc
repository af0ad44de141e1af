#include "analysis/whatif/slow_workers.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <utility>
namespace lockstep::whatif {
namespace {

constexpr double kApart = 2;      // times the excess of its stage, and of the same dp_rank's others
constexpr std::size_t kMost = 8;  // that are looked at together
constexpr std::size_t kAlone = 3;  // and one by one

bool has_several_microbatches(const OpTable& table) {
  std::set<std::int32_t> seen;
  for (const OpNode& node : table.nodes) {
    if (node.type == TraceOp::kForwardCompute && node.stage == 0) {
      seen.insert(node.microbatch);
    }
  }
  return seen.size() > 1;
}

bool says_what_passes_compute(const OpTable& table) {
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    if (is_compute(table.nodes[n].type)) {
      return table.computes(n).data() != table.duration(n).data();
    }
  }
  return false;
}

/// The workers that compute longer than their peers, most first, at most kMost: in all, or, where a
/// worker is now slower and now quicker, in those passes in which it is slower, for which others
/// wait and which no quick one makes up for. Where all of a stage vary, so does each. A long
/// sequence makes all stages of its dp_rank slow, a slow worker its own. Where sequences are
/// uneven, or a step has one microbatch, which does not tell, a worker must stand out there, too;
/// without stages, among dp_ranks whose sequences are uneven. So it must where passes run side by
/// side, as long as each other, and the trace does not say what they compute.
std::vector<std::size_t> apart_from_peers(const OpTable& table, const ComputeExcess& compute,
                                          bool uneven) {
  const std::size_t width = table.width(), stages = compute.workers / width;
  std::vector<std::size_t> found;
  std::vector<double> scratch;
  const bool may_be_others = uneven || (table.side_by_side && !says_what_passes_compute(table)) ||
                             !has_several_microbatches(table);
  for (const std::vector<double>* times : {&compute.excess_s, &compute.late_s}) {
    std::vector<double> shares;
    for (std::size_t worker = 0; worker < compute.workers; ++worker) {
      shares.push_back(compute.share(*times, worker));
    }
    std::vector<double> in_stage;
    for (std::size_t first = 0; first < compute.workers; first += width) {
      scratch.assign(shares.data() + first, shares.data() + first + width);
      in_stage.push_back(std::max(0.0, usual(std::span<double>(scratch))));
    }
    for (std::size_t worker = 0; worker < compute.workers && width > 1; ++worker) {
      const double own = shares[worker], peers = in_stage[worker / width];
      double others = 0;
      for (std::size_t stage = 0; stage < stages; ++stage) {
        others += stage == worker / width ? 0 : shares[stage * width + worker % width];
      }
      others /= static_cast<double>(std::max<std::size_t>(1, stages - 1));
      others = may_be_others ? others : 0;
      for (std::size_t other = 0; other < width && uneven && stages == 1; ++other) {
        others = std::max(others, other == worker ? 0 : shares[other]);
      }
      if (own - peers >= kWorthNaming && own >= kApart * std::max(peers, others) &&
          std::ranges::count(found, worker) == 0) {
        found.push_back(worker);
      }
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [&](std::size_t worker) {
    return compute.total(compute.late_s, worker);
  });
  while (found.size() > kMost) {
    found.pop_back();
  }
  return found;
}

/// All that make a difference, and what each costs.
void find_together(const Scene& scene, std::vector<std::size_t> apart, SlowWorkers& out) {
  Remedy all = replace_workers(scene, apart);
  if (all.saves < out.first->saves + kWorthNaming) {
    return;
  }
  const double now = mean_nodelay(scene);
  std::vector<std::pair<double, std::size_t>> named;
  for (std::size_t i = apart.size(); i-- > 0;) {
    std::vector<std::size_t> others = apart;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    Remedy without = replace_workers(scene, others);
    const double cost = (without.step_time_s - all.step_time_s) / now;
    if (cost >= kWorthNaming) {
      named.emplace_back(cost, apart[i]);
    } else if (others.size() > 1) {
      apart = std::move(others);
      all = std::move(without);
    }
  }
  if (named.size() < 2) {
    return;
  }
  std::ranges::stable_sort(named, std::ranges::greater(), &std::pair<double, std::size_t>::first);
  out.workers.clear();
  for (const auto& [cost, worker] : named) {
    out.workers.push_back(worker);
    out.alone.push_back(cost);
  }
  out.first = replace_worker(scene, out.workers.front());
  out.together = replace_workers(scene, out.workers);
}

}  // namespace

SlowWorkers find_slow_workers(const Scene& scene, const ComputeExcess& compute,
                              const SequenceLengthSign& lengths) {
  SlowWorkers out;
  const std::vector<std::size_t> apart =
      apart_from_peers(scene.table, compute, shows_sequence_length(lengths));
  for (std::size_t i = 0; i < std::min(apart.size(), kAlone); ++i) {
    Remedy remedy = replace_worker(scene, apart[i]);
    if (!out.first || remedy.saves > out.first->saves) {
      out.first = std::move(remedy);
      out.workers = {apart[i]};
    }
  }
  if (apart.size() > 1) {
    find_together(scene, apart, out);
  }
  return out;
}

}  // namespace lockstep::whatif
