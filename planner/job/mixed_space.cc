#include "planner/job/mixed_space.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// A type's own pipelines on so many slots: any number of them, depths at most one apart.
std::vector<Division> own_pipelines(std::size_t type, std::int64_t slots, std::int64_t most_stages,
                                    bool alike) {
  std::vector<Division> result;
  for (std::int64_t pipelines = 1; pipelines <= slots; ++pipelines) {
    const std::int64_t depth = slots / pipelines, deeper = slots % pipelines;
    if (depth + (deeper > 0 ? 1 : 0) > most_stages || (alike && deeper > 0)) {
      continue;
    }
    Division division;
    if (deeper > 0) {
      division.push_back(
          {deeper, std::vector<std::size_t>(static_cast<std::size_t>(depth + 1), type)});
    }
    division.push_back(
        {pipelines - deeper, std::vector<std::size_t>(static_cast<std::size_t>(depth), type)});
    result.push_back(std::move(division));
  }
  return result;
}

/// All ways to take one of each list and put them one behind the other.
std::vector<Division> product(const std::vector<Division>& heads,
                              const std::vector<Division>& tails) {
  std::vector<Division> result;
  for (const Division& head : heads) {
    for (const Division& tail : tails) {
      result.push_back(head);
      result.back().insert(result.back().end(), tail.begin(), tail.end());
    }
  }
  return result;
}

/// Own pipelines of every type on what is left of it.
std::vector<Division> own_of_all(const std::vector<std::int64_t>& left, std::int64_t most_stages,
                                 bool alike) {
  std::vector<Division> result = {{}};
  for (std::size_t t = 0; t < left.size(); ++t) {
    if (left[t] > 0) {
      result = product(result, own_pipelines(t, left[t], most_stages, alike));
    }
  }
  return result;
}

/// Calls f(stages of each type) for all that `pipelines` of them leave room for.
template <class F>
void for_each_depth(const std::vector<std::int64_t>& slots, std::int64_t pipelines,
                    std::int64_t most_stages, F&& f) {
  std::vector<std::int64_t> depth(slots.size(), 1);
  for (;;) {
    if (std::accumulate(depth.begin(), depth.end(), std::int64_t{0}) <= most_stages) {
      f(depth);
    }
    std::size_t t = 0;
    while (t < depth.size() && (depth[t] + 1) * pipelines > slots[t]) {
      depth[t++] = 1;
    }
    if (t == depth.size()) {
      return;
    }
    ++depth[t];
  }
}

}  // namespace

std::int64_t GpuPool::gpus() const {
  std::int64_t sum = 0;
  for (const std::vector<std::int32_t>& server : servers) {
    sum += std::ssize(server);
  }
  return sum;
}

std::vector<std::int32_t> GpuPool::slots(std::int64_t width, std::int64_t tp) const {
  std::vector<std::int32_t> firsts;
  const auto step = static_cast<std::size_t>(width);
  std::int32_t begin = 0, end = -1;  // of whole servers so far
  for (const std::vector<std::int32_t>& server : servers) {
    for (std::size_t i = 0; i + step <= server.size(); i += step) {
      firsts.push_back(server[i]);
    }
    if (step <= server.size()) {
      continue;
    }
    begin = server.front() == end ? begin : server.front();
    end = server.back() + 1;
    if (std::ssize(server) % tp != 0 || end - begin > width) {
      end = -1;
    } else if (end - begin == width) {
      firsts.push_back(begin);
      end = -1;
    }
  }
  return firsts;
}

std::vector<GpuPool> gpu_pools(const Topology& topology, std::int64_t gpus) {
  std::vector<GpuPool> pools;
  const std::vector<NodeId> nodes = topology.gpus();
  std::int32_t server = -1;
  const GpuPool* last = nullptr;
  for (std::int64_t rank = 0; rank < gpus; ++rank) {
    const Node& node = topology.nodes[nodes[static_cast<std::size_t>(rank)].index()];
    const std::string& type = topology.gpu_types[static_cast<std::size_t>(node.gpu_type)];
    auto pool = std::ranges::find(pools, type, &GpuPool::type);
    if (pool == pools.end()) {
      pools.push_back({type, {}, {}});
      pool = std::prev(pools.end());
      last = nullptr;  // it may have moved
    }
    if (last != &*pool || node.server != server) {
      pool->servers.emplace_back();
    }
    pool->servers.back().push_back(static_cast<std::int32_t>(rank));
    last = &*pool;
    server = node.server;
  }
  return pools;
}

std::vector<Division> divisions(const std::vector<std::int64_t>& slots, std::int64_t most_stages) {
  const std::int64_t all = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
  const bool few = all <= kMostMixedSlots;
  std::vector<Division> result;
  for (std::size_t t = 0; t < slots.size(); ++t) {
    std::ranges::move(own_pipelines(t, slots[t], most_stages, !few), std::back_inserter(result));
  }
  if (slots.size() < 2 || std::ranges::min(slots) == 0) {
    return result;
  }
  std::ranges::move(own_of_all(slots, most_stages, !few), std::back_inserter(result));
  for (std::int64_t pipelines = 1; pipelines <= std::ranges::min(slots); ++pipelines) {
    for_each_depth(slots, pipelines, most_stages, [&](const std::vector<std::int64_t>& depth) {
      std::vector<std::int64_t> left = slots;
      bool whole = true;
      std::vector<std::size_t> types;
      for (std::size_t t = 0; t < slots.size(); ++t) {
        left[t] -= pipelines * depth[t];
        whole = whole && left[t] == 0;
        types.insert(types.end(), static_cast<std::size_t>(depth[t]), t);
      }
      if (!whole && !few) {
        return;
      }
      const std::vector<Division> rest = own_of_all(left, most_stages, !few);
      std::ranges::move(product({{{pipelines, types}}}, rest), std::back_inserter(result));
      std::ranges::reverse(types);
      std::ranges::move(product({{{pipelines, types}}}, rest), std::back_inserter(result));
    });
  }
  return result;
}

std::string family_of(const Division& division, const std::vector<GpuPool>& pools) {
  std::set<std::size_t> all;
  bool across = false, own = false;
  for (const PipelineForm& form : division) {
    const std::set<std::size_t> types(form.types.begin(), form.types.end());
    all.insert(types.begin(), types.end());
    (types.size() > 1 ? across : own) = true;
  }
  if (all.size() == 1 && pools.size() > 1) {
    return fmt::format("{} alone", pools[*all.begin()].type);
  }
  if (all.size() == 1) {
    return division.size() == 1 ? "pipelines of one depth" : "pipelines of two depths";
  }
  return !across ? "each type its own pipelines"
         : !own  ? "pipelines across types"
                 : "pipelines across types, and others";
}

std::vector<double> stage_times(const SplitProblem& problem,
                                const std::vector<std::int64_t>& layers) {
  std::vector<double> times;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const std::size_t type = problem.types[s];
    double time = s == 0 ? problem.before_s[type] : 0;
    for (std::int64_t i = 0; i < layers[s]; ++i) {
      time += problem.layer_s[type][layer++];
    }
    times.push_back(time + (s + 1 == layers.size() ? problem.after_s[type] : 0));
  }
  return times;
}

namespace {

/// The dynamic program over (stage, layers done) behind both: what the stages so far come to, as
/// `join(so far, stage)` makes it, at least; stages above `most_s` are none.
template <class Join>
std::vector<std::int64_t> best_split(const SplitProblem& problem, double most_s, Join join) {
  const std::size_t stages = problem.types.size(), layers = problem.layer_s.front().size();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(layers + 1, kFar));
  std::vector<std::vector<std::int64_t>> taken(stages + 1,
                                               std::vector<std::int64_t>(layers + 1, 0));
  best[0][0] = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t type = problem.types[s];
    const double edges =
        (s == 0 ? problem.before_s[type] : 0) + (s + 1 == stages ? problem.after_s[type] : 0);
    for (std::size_t done = s; done < layers; ++done) {
      if (best[s][done] == kFar) {
        continue;
      }
      double time = edges;
      const auto most = static_cast<std::size_t>(problem.most_layers[s]);
      for (std::size_t n = 1; n <= most && done + n <= layers; ++n) {
        time += problem.layer_s[type][done + n - 1];
        if (time > most_s) {
          break;
        }
        const double all = join(best[s][done], time);
        if (all < best[s + 1][done + n]) {
          best[s + 1][done + n] = all;
          taken[s + 1][done + n] = static_cast<std::int64_t>(n);
        }
      }
    }
  }
  if (best[stages][layers] == kFar) {
    return {};
  }
  std::vector<std::int64_t> split(stages);
  for (std::size_t s = stages, done = layers; s > 0; --s) {
    split[s - 1] = taken[s][done];
    done -= static_cast<std::size_t>(split[s - 1]);
  }
  return split;
}

}  // namespace

std::vector<std::int64_t> split_within(const SplitProblem& problem, double most_s) {
  return best_split(problem, most_s, [](double sum, double stage) { return sum + stage; });
}

double least_slowest_s(const SplitProblem& problem) {
  const std::vector<std::int64_t> split =
      best_split(problem, kFar, [](double most, double stage) { return std::max(most, stage); });
  return split.empty() ? kFar : std::ranges::max(stage_times(problem, split));
}

std::vector<Share> share_out(const std::vector<std::int64_t>& pipelines,
                             const std::vector<double>& slowest_s, const std::vector<double>& sum_s,
                             const std::vector<std::int64_t>& grain, std::int64_t microbatches) {
  const std::size_t forms = pipelines.size();
  const std::int64_t least =
      std::inner_product(pipelines.begin(), pipelines.end(), grain.begin(), std::int64_t{0});
  if (least > microbatches) {
    return {};
  }
  // How many a pipeline of a form ends by a time: at least its grain, whenever that is.
  const auto by = [&](std::size_t f, double time) {
    const double more = (time - sum_s[f]) / slowest_s[f];
    const std::int64_t all = 1 + static_cast<std::int64_t>(std::clamp(
                                     more, 0.0, static_cast<double>(microbatches + grain[f])));
    return std::max(grain[f], all / grain[f] * grain[f]);
  };
  const auto all_by = [&](double time) {
    std::int64_t sum = 0;
    for (std::size_t f = 0; f < forms; ++f) {
      sum += pipelines[f] * by(f, time);
    }
    return sum;
  };
  double low = 0, high = 0;
  for (std::size_t f = 0; f < forms; ++f) {
    high = std::max(high, sum_s[f] + static_cast<double>(microbatches + grain[f]) * slowest_s[f]);
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (all_by(middle) >= microbatches ? high : low) = middle;
  }
  std::vector<std::int64_t> each(forms);
  for (std::size_t f = 0; f < forms; ++f) {
    each[f] = by(f, high);
  }
  std::int64_t excess = all_by(high) - microbatches;
  // A grain less for some, the forms that end last first.
  std::vector<std::size_t> order(forms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = [&](std::size_t f) {
    return sum_s[f] + static_cast<double>(each[f] - 1) * slowest_s[f];
  };
  std::vector<std::int64_t> shorter(forms);
  while (excess > 0) {
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return end(a) > end(b); });
    const auto one = std::ranges::find_if(
        order, [&](std::size_t f) { return each[f] > grain[f] && grain[f] <= excess; });
    if (one == order.end()) {
      return {};
    }
    const std::int64_t some = std::min(excess / grain[*one], pipelines[*one] - shorter[*one]);
    shorter[*one] += some;
    excess -= some * grain[*one];
    if (shorter[*one] == pipelines[*one]) {
      each[*one] -= grain[*one];
      shorter[*one] = 0;
    }
  }
  std::vector<Share> shares(forms);
  for (std::size_t f = 0; f < forms; ++f) {
    if (pipelines[f] > shorter[f]) {
      shares[f].emplace_back(pipelines[f] - shorter[f], each[f]);
    }
    if (shorter[f] > 0) {
      shares[f].emplace_back(shorter[f], each[f] - grain[f]);
    }
  }
  return shares;
}

}  // namespace lockstep
