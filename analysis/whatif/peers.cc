#include "analysis/whatif/peers.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/whatif/pauses.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kSlow = 1.1;  // times what is usual

double median_of(std::vector<double>& values) { return usual(std::span<double>(values)); }

bool has_peer_times(const Scene& scene, TraceOp type) {
  const auto& groups = scene.graph.scopes.of(Scope::kPeers);
  const bool all_as_one = !groups.empty() && groups.front().size() == scene.table.width();
  return is_p2p(type) || (is_peer_comm(type) && !all_as_one);
}

/// What is usual for an operation in a step.
double usual_of(std::span<const float> lanes, std::vector<float>& scratch) {
  scratch.assign(lanes.begin(), lanes.end());
  return static_cast<double>(usual(std::span<float>(scratch)));
}

/// What is usual for a transfer in the step that begins with lane `first`, of which `times` are its
/// lanes' times. Of a pass with its peers not less than what they usually would wait for it alone:
/// one whose message comes late may find its parameters gathered, which makes others' no slower.
double usual_transfer(const OpTable& table, std::uint32_t node, std::size_t first,
                      std::span<const double> times, std::vector<double>& scratch) {
  scratch.assign(times.begin(), times.end());
  double reference = median_of(scratch);
  if (is_peer_comm(table.nodes[node].type) && !table.alone_s.empty()) {
    const float* alone = table.alone_s.data() + node * table.lanes() + first;
    scratch.assign(alone, alone + times.size());
    reference = std::max(reference, median_of(scratch));
  }
  return reference;
}

/// Adds an operation's factors where they are of a slow one.
struct Slowness {
  std::vector<double> factors;
  double excess_s = 0;

  void add(double own_s, double usual_s, double slow = kSlow) {
    if (usual_s > 0 && own_s >= slow * usual_s) {
      factors.push_back(own_s / usual_s);
      excess_s += own_s - usual_s;
    }
  }
};

}  // namespace

template <class T>
T usual(std::span<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
template float usual(std::span<float>);
template double usual(std::span<double>);

double ComputeExcess::total(const std::vector<double>& times, std::size_t worker) const {
  double sum = 0;
  for (std::size_t i = worker; i < times.size(); i += workers) {
    sum += times[i];
  }
  return sum;
}

double ComputeExcess::share(const std::vector<double>& times, std::size_t worker) const {
  const double usual = total(usual_s, worker);
  return usual > 0 ? total(times, worker) / usual : 0;
}

ComputeExcess compute_excess(const OpTable& table, bool undisturbed) {
  const std::size_t width = table.width();
  ComputeExcess out{.excess_s = {}, .late_s = {}, .usual_s = {}, .workers = table.ranks.size()};
  out.excess_s.assign(table.steps.size() * out.workers, 0.0);
  out.usual_s = out.late_s = out.excess_s;
  for_each_in_parallel(table.steps.size(), threads_for(table.size()), [&](std::size_t step) {
    std::vector<float> scratch;
    for (std::size_t n = 0; n < table.nodes.size(); ++n) {
      if (!is_compute(table.nodes[n].type)) {
        continue;
      }
      const auto own =
          (undisturbed ? table.undisturbed(n) : table.computes(n)).subspan(step * width, width);
      const double reference = usual_of(own, scratch);
      const std::size_t first =
          step * out.workers + static_cast<std::size_t>(table.nodes[n].stage) * width;
      for (std::size_t lane = 0; lane < width; ++lane) {
        const double excess = static_cast<double>(own[lane]) - reference;
        out.excess_s[first + lane] += excess;
        out.late_s[first + lane] += std::max(0.0, excess);
        out.usual_s[first + lane] += reference;
      }
    }
  });
  return out;
}

void leave_out(const OpTable& table, std::span<const Outlier> outliers, ComputeExcess& excess) {
  const std::size_t width = table.width();
  std::vector<float> scratch;
  for (const Outlier& outlier : outliers) {
    if (!is_compute(table.nodes[outlier.node].type)) {
      continue;
    }
    const std::size_t step = outlier.lane / width, lane = outlier.lane % width;
    const auto own = table.undisturbed(outlier.node).subspan(step * width, width);
    const double late = static_cast<double>(own[lane]) - usual_of(own, scratch);
    const auto stage = static_cast<std::size_t>(table.nodes[outlier.node].stage);
    const std::size_t at = step * excess.workers + stage * width + lane;
    excess.excess_s[at] -= outlier.excess_s;
    excess.late_s[at] += std::max(0.0, late - outlier.excess_s) - std::max(0.0, late);
  }
}

std::optional<SlowPasses> slow_passes(const OpTable& table, std::size_t worker) {
  const std::size_t width = table.width(), stage = worker / width, lane = worker % width;
  std::optional<SlowPasses> found;
  std::vector<float> scratch;
  for (const auto& [type, peer_comm] : kTracePasses) {
    Slowness slowness, all;
    std::size_t passes = 0;
    for (std::size_t n = 0; n < table.nodes.size(); ++n) {
      if (table.nodes[n].type != type || static_cast<std::size_t>(table.nodes[n].stage) != stage) {
        continue;
      }
      for (std::size_t step = 0; step < table.steps.size(); ++step, ++passes) {
        const auto own = table.undisturbed(n).subspan(step * width, width);
        const auto time = static_cast<double>(own[lane]);
        const double reference = usual_of(own, scratch);
        slowness.add(time, reference);
        all.add(time, reference, 0);
      }
    }
    if (slowness.factors.empty()) {
      slowness = std::move(all);
    }
    const std::size_t slow = slowness.factors.size();
    if (slow > 0) {
      const double factor = median_of(slowness.factors);
      if (!found || factor > found->factor) {
        found = SlowPasses{type, factor, slow, passes};
      }
    }
  }
  return found;
}

std::optional<SlowTransfers> slow_transfers(const Scene& scene) {
  const OpTable& table = scene.table;
  const std::size_t width = table.width(), lanes = table.lanes();
  const auto peers = static_cast<std::size_t>(table.peers());
  // By operation, the stages that it joins, and whose it is.
  using Key = std::tuple<TraceOp, std::int32_t, std::int32_t, std::size_t>;
  std::map<Key, Slowness> places;
  std::vector<double> times, scratch;
  for (const CommGroup& group : scene.graph.groups) {
    // A message is there when its receive ends; all ends of other transfers are alike.
    const std::uint32_t node = group.members.back();
    const OpNode& what = table.nodes[node];
    if (!has_peer_times(scene, what.type)) {
      continue;
    }
    const std::size_t own = is_peer_comm(what.type) ? peers : 1;
    for (std::size_t first = 0; first < lanes; first += width) {
      const float* traced = scene.traced.transfer_s.data() + node * lanes + first;
      times.assign(traced, traced + width);
      const double reference = usual_transfer(table, node, first, times, scratch);
      for (std::size_t lane = 0; lane < width; lane += own) {
        const double time = times[lane];
        if (time >= kSlow * reference && reference > 0) {
          places[{what.type, table.nodes[group.members.front()].stage, what.stage, lane}].add(
              time, reference);
        }
      }
    }
  }
  const auto most = std::max_element(
      places.begin(), places.end(),
      [](const auto& a, const auto& b) { return a.second.excess_s < b.second.excess_s; });
  if (most == places.end()) {
    return std::nullopt;
  }
  const auto& [type, from, to, lane] = most->first;
  SlowTransfers out{.what = std::string(to_text(type)), .from = from, .to = to, .lane = lane};
  if (is_p2p(type)) {
    out.what = type == TraceOp::kForwardRecv ? "forward-pp-comm" : "backward-pp-comm";
  }
  out.factor = median_of(most->second.factors);
  std::map<std::tuple<std::int32_t, std::int32_t, std::size_t>, double> both_ways;
  for (const auto& [place, slowness] : places) {
    const auto& [its_type, its_from, its_to, its_lane] = place;
    both_ways[{std::min(its_from, its_to), std::max(its_from, its_to), its_lane}] +=
        slowness.excess_s;
  }
  out.places = static_cast<std::size_t>(
      std::count_if(both_ways.begin(), both_ways.end(),
                    [&](const auto& place) { return place.second >= most->second.excess_s / 2; }));
  return out;
}

StepTimes with_usual_transfers(const Scene& scene) {
  const std::size_t width = scene.table.width();
  return simulate_edited(scene, [&](std::uint32_t node, std::size_t from, std::span<double> out) {
    if (!has_peer_times(scene, scene.table.nodes[node].type)) {
      return;
    }
    thread_local std::vector<double> scratch;
    for (std::size_t first = 0; first < out.size(); first += width) {
      const auto own = out.subspan(first, width);
      const double reference = usual_transfer(scene.table, node, from + first, own, scratch);
      for (double& value : own) {
        value = std::min(value, reference);
      }
    }
  });
}

StepTimes with_usual_worker(const Scene& scene, const std::vector<std::size_t>& worker_of_step) {
  const std::size_t width = scene.table.width();
  return simulate_edited(
      scene, [&](std::uint32_t node, std::size_t first_lane, std::span<double> out) {
        if (!is_compute(scene.table.nodes[node].type)) {
          return;
        }
        const auto stage = static_cast<std::size_t>(scene.table.nodes[node].stage);
        thread_local std::vector<double> scratch;
        for (std::size_t first = 0; first < out.size(); first += width) {
          const std::size_t worker = worker_of_step[(first_lane + first) / width];
          if (worker / width == stage) {
            const auto own = out.subspan(first, width);
            scratch.assign(own.begin(), own.end());
            own[worker % width] = median_of(scratch);
          }
        }
      });
}

HeavyStages heavy_stages(const OpTable& table, const ComputeExcess& compute) {
  const auto stages = static_cast<std::size_t>(table.stages);
  std::vector<double> time(stages, 0.0);
  for (std::size_t i = 0; i < compute.usual_s.size(); ++i) {
    time[i % compute.workers / table.width()] += compute.usual_s[i];
  }
  std::vector<double> sorted = time;
  const double reference = median_of(sorted);
  HeavyStages out;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    if (reference > 0 && time[stage] >= kSlow * reference) {
      out.stages.push_back(static_cast<std::int32_t>(stage));
      out.factors.push_back(time[stage] / reference);
    }
  }
  return out;
}

}  // namespace lockstep::whatif
