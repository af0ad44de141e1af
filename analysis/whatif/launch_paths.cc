#include "analysis/whatif/launch_paths.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "analysis/whatif/values.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The collectives of all dp_ranks, in an order in which they can begin; and of each node which of
/// them it is in.
struct Meetings {
  std::vector<std::size_t> groups;  ///< of the graph
  std::vector<std::int32_t> of_node;
};

Meetings find_meetings(const Scene& scene) {
  Meetings out;
  out.of_node.assign(scene.table.nodes.size(), -1);
  for (const std::uint32_t node : scene.simulator.order()) {
    const std::int32_t group = scene.graph.group_of[node];
    if (group < 0 || scene.graph.groups[static_cast<std::size_t>(group)].scope == Scope::kLane) {
      continue;
    }
    if (out.groups.empty() || out.groups.back() != static_cast<std::size_t>(group)) {
      out.groups.push_back(static_cast<std::size_t>(group));
    }
    out.of_node[node] = static_cast<std::int32_t>(out.groups.size()) - 1;
  }
  return out;
}

/// What can be reached from a collective without passing another one, itself and those included.
std::vector<bool> reached(const Scene& scene, const Meetings& meetings, std::size_t from) {
  std::vector<bool> found(scene.table.nodes.size(), false);
  for (const std::uint32_t node : scene.simulator.order()) {
    bool now = meetings.of_node[node] == static_cast<std::int32_t>(from);
    for (const std::uint32_t p : scene.graph.predecessors[node]) {
      const bool ends_here =
          meetings.of_node[p] >= 0 && meetings.of_node[p] != static_cast<std::int32_t>(from);
      now = now || (found[p] && !ends_here);
    }
    if (now && !found[node]) {
      found[node] = true;
      // The members of a group end together.
      if (const std::int32_t group = scene.graph.group_of[node]; group >= 0) {
        for (const std::uint32_t m : scene.graph.groups[static_cast<std::size_t>(group)].members) {
          found[m] = true;
        }
      }
    }
  }
  return found;
}

/// The longest paths of one step, from each begin to each collective and to the end of the step.
class Paths {
 public:
  Paths(std::size_t meetings, std::size_t dp)
      : meetings_(meetings), dp_(dp), length_((meetings + 1) * (meetings + 1) * dp, kNever) {}

  /// `from` 0: the step's begin, j + 1: collective j. `to`: k, or the number of collectives: the
  /// end.
  double* at(std::size_t from, std::size_t to) {
    return length_.data() + (from * (meetings_ + 1) + to) * dp_;
  }
  void clear() { std::fill(length_.begin(), length_.end(), kNever); }

 private:
  std::size_t meetings_, dp_;
  std::vector<double> length_;
};

/// The largest of a path over the dp_ranks, and the largest but that one.
struct Largest {
  double first = kNever, second = kNever;
  std::size_t whose = 0;

  explicit Largest(std::span<const double> lengths) {
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      if (lengths[d] > first) {
        second = first;
        first = lengths[d];
        whose = d;
      } else {
        second = std::max(second, lengths[d]);
      }
    }
  }
  double without(std::size_t d) const { return d == whose ? second : first; }
};

class Worker {
 public:
  Worker(const Scene& scene, const Meetings& meetings,
         const std::vector<std::unique_ptr<Simulator>>& parts,
         std::vector<std::vector<double>>& times)
      : scene_(scene),
        meetings_(meetings),
        parts_(parts),
        values_(scene),
        dp_(scene.table.width()),
        plain_(meetings.groups.size(), dp_),
        delayed_(meetings.groups.size(), dp_),
        times_(times) {}

  void play(std::size_t step) {
    for (const bool late : {false, true}) {
      Paths& paths = late ? delayed_ : plain_;
      paths.clear();
      for (std::size_t from = 0; from < parts_.size(); ++from) {
        find_paths(step, from, late, paths);
      }
    }
    solve(step);
  }

 private:
  void find_paths(std::size_t step, std::size_t from, bool late, Paths& paths) {
    const double begin = from == 0 ? scene_.model.step_start_s[step] : kNever;
    const auto is_source = [&](std::uint32_t node) {
      return from > 0 && meetings_.of_node[node] == static_cast<std::int32_t>(from) - 1;
    };
    const auto value = [&](std::uint32_t node, std::size_t, std::span<double> out) {
      if (meetings_.of_node[node] >= 0 && !is_source(node)) {
        std::fill(out.begin(), out.end(), kNever);  // paths end here
      } else {
        values_.nodelay(node, step * dp_, out);
      }
    };
    const auto delay = [&](std::uint32_t node, std::size_t, std::span<double> starts) {
      if (is_source(node)) {
        std::fill(starts.begin(), starts.end(), 0.0);
      } else if (late) {
        gaps_.resize(starts.size());
        launch_delays(scene_.table, scene_.graph, scene_.traced, node, step * dp_, gaps_);
        for (std::size_t i = 0; i < starts.size(); ++i) {
          starts[i] += static_cast<double>(gaps_[i]);
        }
      }
    };
    const auto sink = [&](std::uint32_t node, std::size_t, std::span<const double> starts,
                          std::span<const double> ends) {
      if (meetings_.of_node[node] >= 0 && !is_source(node)) {
        detail::max_into(paths.at(from, static_cast<std::size_t>(meetings_.of_node[node])),
                         starts.data(), dp_);
      }
      if (scene_.table.nodes[node].type == TraceOp::kOptimizer) {
        detail::max_into(paths.at(from, meetings_.groups.size()), ends.data(), dp_);
      }
    };
    parts_[from]->run({&begin, 1}, LaneScopes{.lanes = dp_, .groups = {}}, value, delay, sink,
                      /*spans=*/false);
  }

  void solve(std::size_t step) {
    const std::size_t count = meetings_.groups.size();
    std::vector<Largest> others;
    for (std::size_t from = 0; from <= count; ++from) {
      for (std::size_t to = 0; to <= count; ++to) {
        others.emplace_back(std::span<const double>(plain_.at(from, to), dp_));
      }
    }
    std::vector<double> begin(count + 1);
    for (std::size_t d = 0; d < dp_; ++d) {
      for (std::size_t to = 0; to <= count; ++to) {
        begin[to] = std::max(others[to].without(d), delayed_.at(0, to)[d]);
        for (std::size_t j = 0; j < to; ++j) {
          const double path =
              std::max(others[(j + 1) * (count + 1) + to].without(d), delayed_.at(j + 1, to)[d]);
          begin[to] = std::max(begin[to], begin[j] + path);
        }
      }
      times_[d][step] = begin[count] - scene_.model.step_start_s[step];
    }
  }

  const Scene& scene_;
  const Meetings& meetings_;
  const std::vector<std::unique_ptr<Simulator>>& parts_;
  const Values values_;
  std::size_t dp_;
  Paths plain_, delayed_;
  std::vector<float> gaps_;
  std::vector<std::vector<double>>& times_;
};

}  // namespace

std::vector<std::vector<double>> launch_times_by_paths(const Scene& scene) {
  const Meetings meetings = find_meetings(scene);
  std::vector<std::unique_ptr<Simulator>> parts;
  parts.push_back(std::make_unique<Simulator>(scene.simulator));
  for (std::size_t j = 0; j < meetings.groups.size(); ++j) {
    parts.push_back(
        std::make_unique<Simulator>(scene.table, scene.graph, "", reached(scene, meetings, j)));
  }
  const std::size_t steps = scene.table.steps.size();
  std::vector<std::vector<double>> times(scene.table.width(), std::vector<double>(steps));
  const std::size_t threads =
      std::min<std::size_t>(steps, std::max(1U, std::thread::hardware_concurrency()));
  for_each_in_parallel(threads, static_cast<int>(threads), [&](std::size_t share) {
    Worker worker(scene, meetings, parts, times);
    for (std::size_t step = share; step < steps; step += threads) {
      worker.play(step);
    }
  });
  return times;
}

std::size_t launch_paths_cost(const Scene& scene) {
  const Meetings meetings = find_meetings(scene);
  std::size_t nodes = scene.table.nodes.size();
  for (std::size_t j = 0; j < meetings.groups.size(); ++j) {
    const std::vector<bool> found = reached(scene, meetings, j);
    nodes += static_cast<std::size_t>(std::count(found.begin(), found.end(), true));
  }
  return 2 * nodes / scene.table.nodes.size() + 1;
}

}  // namespace lockstep::whatif
