#include "planner/metis/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace lockstep::metis {
namespace {

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum;
}

const std::string& type_of(const Problem& problem, const Rank& rank) {
  return problem.nodes[static_cast<std::size_t>(rank.node)].type;
}

/// Types of the ranks [first, end), each once.
std::vector<std::string> types_in(const Problem& problem, const std::vector<Rank>& ranks, int first,
                                  int end) {
  std::vector<std::string> types;
  for (int r = first; r < end; ++r) {
    const std::string& type = type_of(problem, ranks[static_cast<std::size_t>(r)]);
    if (std::find(types.begin(), types.end(), type) == types.end()) {
      types.push_back(type);
    }
  }
  return types;
}

/// Bandwidth in GB/s of a group of `count` ranks, every `stride`th from `first` on: the least that
/// its servers have, between them if there are several. Metis (strict) goes by type and never uses
/// the one between servers: a group on one server has what the first server of that type has,
/// another the least of all servers of its types.
double bandwidth(const Problem& problem, const std::vector<Rank>& ranks, int first, int count,
                 int stride) {
  std::vector<const Node*> group;
  for (int i = 0; i < count; ++i) {
    const Rank& rank = ranks[static_cast<std::size_t>(first + i * stride)];
    const Node* node = &problem.nodes[static_cast<std::size_t>(rank.taken)];
    if (group.empty() || group.back() != node) {
      group.push_back(node);
    }
  }
  double least = std::numeric_limits<double>::infinity();
  if (problem.flavour == Flavour::kFixed) {
    for (const Node* node : group) {
      least = std::min(least, group.size() > 1 ? node->inter : node->intra);
    }
    return least;
  }
  for (const Node& node : problem.nodes) {
    if (std::ranges::count(group, node.type, &Node::type) > 0) {
      least = std::min(least, node.intra);
      if (group.size() == 1) {
        break;
      }
    }
  }
  return least;
}

const Profile* find(const Problem& problem, const std::string& type, int tp, std::int64_t samples,
                    std::string* missing) {
  const Profile* profile = problem.profiles.find(type, tp, samples);
  if (profile == nullptr && missing != nullptr) {
    *missing = fmt::format("DeviceType.{}_tp{}_bs{}.json", type, tp, samples);
  }
  return profile;
}

double bytes_per_ms(const Problem& problem, double bandwidth_gbps) {
  return bandwidth_gbps * (problem.flavour == Flavour::kStrict ? 1024.0 * 1024.0 : 1e6);
}

}  // namespace

int Problem::gpus() const {
  int count = 0;
  for (const Node& node : nodes) {
    count += node.gpus;
  }
  return count;
}

std::vector<std::string> Problem::types() const {
  std::vector<std::string> all;
  for (const Node& node : nodes) {
    if (std::find(all.begin(), all.end(), node.type) == all.end()) {
      all.push_back(node.type);
    }
  }
  return all;
}

std::vector<Rank> ranks_of(const Problem& problem, const std::vector<std::string>& sequence) {
  const std::vector<std::string> types = problem.types();
  if (!std::ranges::is_permutation(sequence, types)) {
    throw Error(fmt::format("the order of GPU types is ({})", fmt::join(sequence, ", ")))
        .field("node_sequence")
        .expected(fmt::format("each of {} once", fmt::join(types, ", ")));
  }
  std::vector<int> order;
  std::vector<Rank> ranks;
  for (const std::string& type : sequence) {
    for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
      if (problem.nodes[n].type == type) {
        order.push_back(static_cast<int>(n));
        ranks.insert(ranks.end(), static_cast<std::size_t>(problem.nodes[n].gpus),
                     {order.back(), order.back()});
      }
    }
  }
  if (problem.flavour == Flavour::kFixed) {
    return ranks;
  }
  const auto slots = static_cast<std::size_t>(problem.nodes.front().gpus);
  if (ranks.size() > slots * order.size()) {
    throw Error(fmt::format("Metis takes each of {} hosts to have the first's {} GPUs, and has "
                            "none for the last of {}",
                            order.size(), slots, ranks.size()))
        .field("slots")
        .expected(fmt::format("at most {} GPUs", slots * order.size()))
        .hint("begin with the host that has the most GPUs, or use --cost fixed");
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].taken = order[r / slots];
  }
  return ranks;
}

std::vector<std::int64_t> balance(const Problem& problem, const std::vector<std::string>& leaders,
                                  int tp, std::int64_t batch, std::string* missing) {
  std::vector<double> speed;
  for (const std::string& leader : leaders) {
    const Profile* profile = find(problem, leader, tp, 1, missing);
    if (profile == nullptr) {
      return {};
    }
    speed.push_back(1 / sum_of(profile->layer_ms));
  }
  const double all = sum_of(speed);
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> rest;
  std::int64_t given = 0;
  for (std::size_t d = 0; d < speed.size(); ++d) {
    const double exact = static_cast<double>(batch) * (speed[d] / all);
    shares.push_back(static_cast<std::int64_t>(exact));
    given += shares.back();
    rest.emplace_back(exact - static_cast<double>(shares.back()), d);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; given < batch; ++i, ++given) {
    ++shares[rest[i % rest.size()].second];
  }
  return shares;
}

std::vector<std::string> leaders_of(const Problem& problem, const std::vector<Rank>& ranks,
                                    int first, Strategy strategy) {
  std::vector<std::string> leaders;
  leaders.reserve(static_cast<std::size_t>(strategy.dp));
  for (int d = 0; d < strategy.dp; ++d) {
    leaders.push_back(type_of(problem, ranks[static_cast<std::size_t>(first + d * strategy.tp)]));
  }
  return leaders;
}

bool alike(const Problem& problem, const std::vector<Rank>& ranks, int first, int gpus,
           bool taken) {
  const auto type = [&](int r) -> const std::string& {
    const Rank& rank = ranks[static_cast<std::size_t>(r)];
    return problem.nodes[static_cast<std::size_t>(taken ? rank.taken : rank.node)].type;
  };
  for (int r = first; r < first + gpus; ++r) {
    if (type(r) != type(first)) {
      return false;
    }
  }
  return true;
}

bool add_pieces(const Problem& problem, const std::string& type, int tp, std::int64_t samples,
                std::vector<double> Profile::*list, std::vector<double>& sums,
                std::string* missing) {
  for (std::int64_t piece = std::int64_t{1} << 40; piece > 0; piece /= 2) {
    if ((samples & piece) == 0) {
      continue;
    }
    const Profile* profile = find(problem, type, tp, piece, missing);
    if (profile == nullptr) {
      return false;
    }
    for (std::size_t l = 0; l < sums.size(); ++l) {
      sums[l] += (profile->*list)[l];
    }
  }
  return true;
}

std::vector<std::vector<double>> group_times(const Problem& problem, const std::vector<Rank>& ranks,
                                             int first, int gpus, Strategy strategy,
                                             std::int64_t batches, std::string* missing) {
  const std::vector<std::string> leaders = leaders_of(problem, ranks, first, strategy);
  if (alike(problem, ranks, first, gpus)) {
    const Profile* profile = find(problem, leaders[0], strategy.tp,
                                  problem.global_batch / strategy.dp / batches, missing);
    return profile == nullptr ? std::vector<std::vector<double>>{}
                              : std::vector<std::vector<double>>{profile->layer_ms};
  }
  const std::vector<std::int64_t> shares =
      balance(problem, leaders, strategy.tp, problem.global_batch / batches, missing);
  std::vector<std::vector<double>> groups;
  std::vector<std::pair<std::string, std::int64_t>> seen;
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (std::find(seen.begin(), seen.end(), std::pair(leaders[d], shares[d])) != seen.end()) {
      continue;
    }
    seen.emplace_back(leaders[d], shares[d]);
    std::vector<double> times(static_cast<std::size_t>(problem.layers), 0.0);
    if (!add_pieces(problem, leaders[d], strategy.tp, shares[d], &Profile::layer_ms, times,
                    missing)) {
      return {};
    }
    groups.push_back(std::move(times));
  }
  return groups;
}

double update_ms(const Problem& problem, Strategy strategy, std::int64_t layers) {
  return 2 * problem.profiles.model.optimizer_ms / strategy.tp * static_cast<double>(layers) /
         static_cast<double>(problem.layers);
}

double gradient_ms_a_byte(const Problem& problem, const std::vector<Rank>& ranks, int first,
                          Strategy strategy) {
  // Those that hold the same part of each layer are every tp-th rank; Metis deals out the ranks the
  // other way, into dp groups of tp.
  const bool strict = problem.flavour == Flavour::kStrict;
  const int groups = strict ? strategy.dp : strategy.tp;
  double slowest = std::numeric_limits<double>::infinity();
  for (int g = 0; g < groups; ++g) {
    slowest = std::min(
        slowest, bandwidth(problem, ranks, first + g, strict ? strategy.tp : strategy.dp, groups));
  }
  return 2.0 * (strategy.dp - 1) / (strategy.dp * bytes_per_ms(problem, slowest));
}

double parameter_bytes(const Problem& problem, Strategy strategy, std::int64_t begin,
                       std::int64_t end) {
  const std::vector<double>& parameters = problem.profiles.model.layer_bytes;
  double bytes = 0;
  for (std::int64_t layer = begin; layer < end; ++layer) {
    const bool block = layer > 0 && layer + 1 < problem.layers;
    bytes += block ? parameters[1] : parameters[static_cast<std::size_t>(layer)];
  }
  // Metis gives the embedding to the stage that begins there and the head to the one that ends
  // there, and takes them off its layers; the rest are blocks: less than none if it has no layers.
  if (problem.flavour == Flavour::kStrict && begin == end &&
      (begin == 0 || end == problem.layers)) {
    bytes = parameters[begin == 0 ? 0 : parameters.size() - 1] - parameters[1];
  }
  return bytes / strategy.tp;
}

double elements_sent(const Problem& problem, std::int64_t samples, int tp,
                     std::int64_t next_layer) {
  return static_cast<double>(samples) * static_cast<double>(problem.sequence) *
         (next_layer + 1 == problem.layers ? static_cast<double>(problem.vocabulary) / tp
                                           : static_cast<double>(problem.hidden));
}

double transfer_ms(const Problem& problem, const std::vector<Rank>& ranks, int first, int end,
                   Strategy sender, std::int64_t batches, std::int64_t next_layer) {
  double elements =
      elements_sent(problem, problem.global_batch / sender.dp / batches, sender.tp, next_layer);
  if (problem.flavour == Flavour::kFixed) {
    // Of a mean rank: GPUs of several types may share samples out that dp does not divide.
    elements = 2.0 * static_cast<double>(problem.global_batch) /
               static_cast<double>(batches * sender.dp) * static_cast<double>(problem.sequence) *
               static_cast<double>(problem.hidden);
  }
  return elements / bytes_per_ms(problem, bandwidth(problem, ranks, first, end - first, 1));
}

std::optional<double> sync_ms(const Problem& problem, const std::vector<Rank>& ranks, int first,
                              int gpus, Strategy strategy, std::int64_t batches,
                              std::string* missing) {
  double most = -std::numeric_limits<double>::infinity();
  for (const std::string& type : types_in(problem, ranks, first, first + gpus)) {
    const Profile* profile =
        find(problem, type, strategy.tp, problem.global_batch / strategy.dp / batches, missing);
    if (profile == nullptr || (problem.flavour == Flavour::kStrict && profile->sync_ms() == 0)) {
      return std::nullopt;
    }
    most = std::max(most, profile->sync_ms());
  }
  if (problem.flavour == Flavour::kFixed) {
    most = std::max(most, 0.0);  // a step that takes less than its layers has no other part
  }
  return static_cast<double>(batches) * most;
}

Error no_sync_error(const Problem& problem) {
  return Error("the last stage's step takes what its layers take, to the last bit")
      .at(problem.profiles.folder)
      .field("forward_backward_time_ms")
      .expected("any other time: Metis takes this for a missing profile")
      .hint("--cost fixed prices it");
}

Price price_plan(const Problem& problem, const Plan& plan) {
  const std::vector<Rank> ranks = ranks_of(problem, plan.node_sequence);
  const std::size_t stages = plan.device_groups.size();
  if (stages == 0 || plan.strategies.size() != stages || plan.partition.size() != stages + 1 ||
      plan.batches < 1) {
    throw Error("groups, strategies and partition of the plan have unequal lengths")
        .expected("a strategy and a first layer for each device group, and the end");
  }
  Price price;
  double slowest = 0, sum = 0;
  int first = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const int gpus = plan.device_groups[s];
    const Strategy strategy = plan.strategies[s];
    const std::int64_t begin = plan.partition[s], end = plan.partition[s + 1];
    if (gpus < 1 || strategy.dp < 1 || strategy.tp < 1 ||
        std::int64_t{strategy.dp} * strategy.tp != gpus ||
        first + gpus > static_cast<int>(ranks.size()) || begin < 0 || begin > end ||
        end > problem.layers) {
      throw Error(fmt::format("stage {} has {} GPUs as dp {} x tp {} for the layers {} to {}", s,
                              gpus, strategy.dp, strategy.tp, begin, end))
          .expected(fmt::format("dp x tp = GPUs, of {} GPUs and {} layers", ranks.size(),
                                problem.layers));
    }
    std::string missing;
    const auto groups = group_times(problem, ranks, first, gpus, strategy, plan.batches, &missing);
    if (groups.empty()) {
      throw Error("no such profile").at(missing).field(fmt::format("stage {}", s));
    }
    double time = 0;
    for (const std::vector<double>& layer : groups) {
      double total = 0;
      for (std::int64_t l = begin; l < end; ++l) {
        total += layer[static_cast<std::size_t>(l)];
      }
      time = std::max(time, total);
    }
    slowest = std::max(slowest, time);
    sum += time;
    price.update = std::max(price.update, update_ms(problem, strategy, end - begin));
    const double gradients = gradient_ms_a_byte(problem, ranks, first, strategy) *
                             parameter_bytes(problem, strategy, begin, end);
    price.data_parallel = s == 0 ? gradients : std::max(price.data_parallel, gradients);
    if (s + 1 < stages) {
      const int after = first + gpus + plan.device_groups[s + 1];
      if (plan.device_groups[s + 1] < 1 || after > static_cast<int>(ranks.size())) {
        throw Error(fmt::format("stage {} has {} GPUs", s + 1, plan.device_groups[s + 1]));
      }
      price.pipeline += transfer_ms(problem, ranks, first, after, strategy, plan.batches, end);
    } else {
      const auto sync = sync_ms(problem, ranks, first, gpus, strategy, plan.batches, &missing);
      if (!sync && !missing.empty()) {
        throw Error("no such profile").at(missing).field(fmt::format("stage {}", s));
      }
      if (!sync) {
        throw no_sync_error(problem);
      }
      price.synchronisation = *sync;
    }
    first += gpus;
  }
  price.execution = static_cast<double>(plan.batches - 1) * slowest + sum;
  price.batch = static_cast<double>(plan.batches) * problem.profiles.model.batch_generator_ms;
  return price;
}

}  // namespace lockstep::metis
