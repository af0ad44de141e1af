#include "planner/metis/outlook.h"

#include <algorithm>
#include <utility>

namespace lockstep::metis {
namespace {

constexpr int kLimits = 32;
constexpr double kStep = 1.04;

}  // namespace

Outlook::Outlook(const Problem& problem, const std::vector<Rank>& ranks,
                 const std::vector<std::vector<StageOption>>& options, std::int64_t batches)
    : gpus_(static_cast<int>(ranks.size())), layers_(problem.layers), batches_(batches) {
  const double bottleneck = least_bottleneck(options);
  if (batches > 1 && bottleneck > 0 && bottleneck < kFar) {
    for (double limit = bottleneck; limits_.size() + 1 < kLimits; limit *= kStep) {
      limits_.push_back(limit * (1 + 1e-12));  // sums in another order are not beyond it
    }
  }
  limits_.push_back(kFar);
  sums_.assign(at(gpus_, layers_) + limits_.size(), kFar);
  std::fill(sums_.end() - static_cast<std::ptrdiff_t>(limits_.size()), sums_.end(), 0.0);
  edges_.resize(static_cast<std::size_t>(gpus_));
  for (int used = gpus_ - 1; used >= 0; --used) {
    for (const StageOption& option : options[static_cast<std::size_t>(used)]) {
      const int behind = used + option.gpus;
      const auto sent = [&](std::int64_t end) {  // over the widest of the edges that there may be
        double least = kFar;
        for (const StageOption& next : options[static_cast<std::size_t>(behind)]) {
          least = std::min(least, transfer_ms(problem, ranks, used, behind + next.gpus,
                                              option.strategy, batches, end));
        }
        return least;
      };
      const bool last = behind == gpus_;
      const Edge edge = last ? Edge{option.sync, option.sync} : Edge{sent(0), sent(layers_ - 1)};
      edges_[static_cast<std::size_t>(used)].push_back(edge);
      for (std::int64_t done = 0; done < layers_; ++done) {
        double* const here = &sums_[at(used, done)];
        for (std::int64_t end = last ? layers_ : done + 1; end < layers_ + (last ? 1 : 0); ++end) {
          if (!option.holds(done, end)) {
            break;
          }
          const double time = option.time(done, end);
          const double each = time + (end + 1 == layers_ ? edge.to_head : edge.to_layer);
          const double* const rest = &sums_[at(behind, end)];
          for (std::size_t k = first_limit(time); k < limits_.size(); ++k) {
            here[k] = std::min(here[k], each + rest[k]);
          }
        }
      }
    }
  }
}

std::vector<Plan> Outlook::plans(const std::vector<std::vector<StageOption>>& options) const {
  std::vector<Plan> plans;
  for (std::size_t k = 0; k < limits_.size(); ++k) {
    if (sums_[k] == kFar) {
      continue;
    }
    Plan plan{.node_sequence = {}, .batches = batches_, .partition = {0}};
    for (int used = 0; used < gpus_;) {
      const auto& here = options[static_cast<std::size_t>(used)];
      const auto [option, end] = best_stage(here, used, plan.partition.back(), k);
      plan.device_groups.push_back(here[option].gpus);
      plan.strategies.push_back(here[option].strategy);
      plan.partition.push_back(end);
      used += here[option].gpus;
    }
    if (std::ranges::find(plans, plan) == plans.end()) {
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

/// Of what may begin there: which option, to which layer, has the least sum within the limit.
std::pair<std::size_t, std::int64_t> Outlook::best_stage(const std::vector<StageOption>& options,
                                                         int used, std::int64_t done,
                                                         std::size_t limit) const {
  std::pair<std::size_t, std::int64_t> best{0, layers_};
  double least = kFar;
  for (std::size_t o = 0; o < options.size(); ++o) {
    const bool last = used + options[o].gpus == gpus_;
    for (std::int64_t end = last ? layers_ : done + 1;
         end < layers_ + (last ? 1 : 0) && options[o].holds(done, end); ++end) {
      const double time = options[o].time(done, end);
      const Edge& edge = edges_[static_cast<std::size_t>(used)][o];
      const double sum = time + (end + 1 == layers_ ? edge.to_head : edge.to_layer) +
                         sums_[at(used + options[o].gpus, end) + limit];
      if (limit >= first_limit(time) && sum < least) {
        least = sum;
        best = {o, end};
      }
    }
  }
  return best;
}

/// The least limit that a stage of so long keeps to.
std::size_t Outlook::first_limit(double time) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(limits_, time) - limits_.begin());
}

std::size_t Outlook::at(int used, std::int64_t done) const {
  return (static_cast<std::size_t>(used) * static_cast<std::size_t>(layers_ + 1) +
          static_cast<std::size_t>(done)) *
         limits_.size();
}

/// Of all GPUs and layers.
double Outlook::least_bottleneck(const std::vector<std::vector<StageOption>>& options) {
  const auto width = static_cast<std::size_t>(layers_ + 1);
  std::vector<double> least(static_cast<std::size_t>(gpus_ + 1) * width, kFar);
  const auto place = [&](int used, std::int64_t done) {
    return static_cast<std::size_t>(used) * width + static_cast<std::size_t>(done);
  };
  least[place(gpus_, layers_)] = 0;
  for (int used = gpus_ - 1; used >= 0; --used) {
    for (const StageOption& option : options[static_cast<std::size_t>(used)]) {
      const bool last = used + option.gpus == gpus_;
      for (std::int64_t done = 0; done < layers_; ++done) {
        double& here = least[place(used, done)];
        for (std::int64_t end = last ? layers_ : done + 1; end < layers_ + (last ? 1 : 0); ++end) {
          if (!option.holds(done, end)) {
            short_of_memory_ = true;
            break;
          }
          here = std::min(here,
                          std::max(option.time(done, end), least[place(used + option.gpus, end)]));
        }
      }
    }
  }
  return least[0];
}

double Outlook::left(int used, std::int64_t done, double slowest) const {
  const double* const sums = &sums_[at(used, done)];
  const auto turns = static_cast<double>(batches_ - 1);
  double least = kFar;
  for (auto k =
           static_cast<std::size_t>(std::ranges::lower_bound(limits_, slowest) - limits_.begin());
       k < limits_.size(); ++k) {
    const double turn = k == 0 ? slowest : std::max(slowest, limits_[k - 1]);
    least = std::min(least, turns * turn + sums[k]);
  }
  return least;
}

}  // namespace lockstep::metis
