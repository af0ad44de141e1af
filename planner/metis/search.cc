#include "planner/metis/search.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "planner/metis/memory.h"
#include "planner/metis/space.h"

namespace lockstep::metis {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

struct Label {
  double slowest = 0, sum = 0, update = 0, gradient = 0;
  int parent = -1;
  int used = 0;
  std::int64_t layers = 0;
  int gpus = 0;
  Strategy strategy;
};

/// A stage's place and strategy, without its layers.
struct Option {
  int gpus = 0;
  Strategy strategy;
  std::vector<std::vector<double>> prefix;  ///< of each distinct group
  double sync = kFar;
  StageMemory memory;
  double gradient_ms_a_byte = 0;
};

class Search {
 public:
  Search(const Problem& problem, std::vector<std::string> sequence, std::int64_t batches,
         std::size_t most)
      : problem_(problem),
        sequence_(std::move(sequence)),
        batches_(batches),
        most_(most),
        ranks_(ranks_of(problem, sequence_)) {
    for (int first = 0; first < gpus(); ++first) {
      options_.push_back(options_at(first));
      for (const Option& option : options_.back()) {
        if (first + option.gpus == gpus()) {
          least_sync_ = std::min(least_sync_, option.sync);
        }
      }
    }
  }

  /// Whether run() met a stage with more layers than its GPUs hold.
  bool short_of_memory() const { return short_of_memory_; }

  /// The cheapest plans, cheapest first.
  std::vector<Ranked> run() {
    nodes_.assign(static_cast<std::size_t>(gpus() + 1),
                  std::vector<std::vector<int>>(static_cast<std::size_t>(problem_.layers + 1)));
    labels_.push_back({});
    nodes_[0][0].push_back(0);
    for (int used = 0; used < gpus(); ++used) {
      for (std::int64_t done = 0; done < problem_.layers; ++done) {
        // Copied: stages are added to later nodes only, but the pool moves.
        const std::vector<int> here =
            nodes_[static_cast<std::size_t>(used)][static_cast<std::size_t>(done)];
        for (const int label : here) {
          for (const Option& option : options_[static_cast<std::size_t>(used)]) {
            extend(label, option);
          }
        }
      }
    }
    std::vector<Ranked> best;
    for (const auto& [total, label] : ends_) {
      Plan plan = plan_of(label);
      const Price price = price_plan(problem_, plan);
      best.push_back({std::move(plan), price});
    }
    return best;
  }

 private:
  int gpus() const { return static_cast<int>(ranks_.size()); }

  std::vector<Option> options_at(int first) const {
    std::vector<Option> found;
    for (int size = 1; first + size <= gpus(); size *= 2) {
      for (int tp = 1; tp <= std::min(size, problem_.max_tp); tp *= 2) {
        const Strategy strategy{size / tp, tp};
        if (!left_out_because(problem_, ranks_, first, strategy, batches_).empty()) {
          continue;
        }
        Option option{.gpus = size,
                      .strategy = strategy,
                      .memory = StageMemory(problem_, ranks_, first, size, strategy, batches_)};
        for (const std::vector<double>& layers :
             group_times(problem_, ranks_, first, size, strategy, batches_, nullptr)) {
          std::vector<double> prefix = {0};
          for (const double layer : layers) {
            prefix.push_back(prefix.back() + layer);
          }
          option.prefix.push_back(std::move(prefix));
        }
        if (!option.prefix.empty() && option.memory.known()) {
          option.sync =
              sync_ms(problem_, ranks_, first, size, strategy, batches_, nullptr).value_or(kFar);
          option.gradient_ms_a_byte = gradient_ms_a_byte(problem_, ranks_, first, strategy);
          found.push_back(std::move(option));
        }
      }
    }
    return found;
  }

  double total(const Label& label, double sync) const {
    return static_cast<double>(batches_ - 1) * label.slowest + label.sum + label.update +
           label.gradient + sync +
           static_cast<double>(batches_) * problem_.profiles.model.batch_generator_ms;
  }

  /// What a plan must cost less than to be among the best.
  double beat() const { return ends_.size() < most_ ? kFar : ends_.back().first; }

  void end_with(const Label& label, double total) {
    ends_.insert(std::ranges::upper_bound(ends_, total, {}, &std::pair<double, int>::first),
                 {total, static_cast<int>(labels_.size())});
    labels_.push_back(label);
    ends_.resize(std::min(ends_.size(), most_));
  }

  void extend(int parent, const Option& option) {
    const Label before = labels_[static_cast<std::size_t>(parent)];
    const int used = before.used + option.gpus;
    const bool last = used == gpus();
    Label label = before;
    label.parent = parent;
    label.used = used;
    label.gpus = option.gpus;
    label.strategy = option.strategy;
    if (parent > 0) {
      label.sum += transfer_ms(problem_, ranks_, before.used - before.gpus, used, before.strategy,
                               batches_, before.layers);
    }
    const double sum = label.sum;
    for (std::int64_t end = last ? problem_.layers : before.layers + 1; end <= problem_.layers;
         ++end) {
      if (!last && end == problem_.layers) {
        break;
      }
      if (option.memory.demand_mb(before.layers, end) > option.memory.room_mb()) {
        short_of_memory_ = true;
        break;
      }
      double time = 0;
      for (const std::vector<double>& prefix : option.prefix) {
        time = std::max(time, prefix[static_cast<std::size_t>(end)] -
                                  prefix[static_cast<std::size_t>(before.layers)]);
      }
      label.layers = end;
      label.slowest = std::max(before.slowest, time);
      label.sum = sum + time;
      label.update =
          std::max(before.update, update_ms(problem_, option.strategy, end - before.layers));
      label.gradient = std::max(before.gradient,
                                option.gradient_ms_a_byte *
                                    parameter_bytes(problem_, option.strategy, before.layers, end));
      if (total(label, last ? option.sync : least_sync_) >= beat()) {
        if (last) {
          continue;
        }
        break;  // more layers cost more
      }
      if (last) {
        end_with(label, total(label, option.sync));
      } else {
        insert(label);
      }
    }
  }

  /// Keeps the label unless enough others with the same last stage are no worse in anything.
  void insert(const Label& label) {
    std::vector<int>& node =
        nodes_[static_cast<std::size_t>(label.used)][static_cast<std::size_t>(label.layers)];
    const auto covers = [](const Label& a, const Label& b) {
      return a.gpus == b.gpus && a.strategy.tp == b.strategy.tp && a.slowest <= b.slowest &&
             a.sum <= b.sum && a.update <= b.update && a.gradient <= b.gradient;
    };
    const auto covered = [&](const Label& which) {  // by so many others
      std::size_t count = 0;
      for (const int other : node) {
        const Label& each = labels_[static_cast<std::size_t>(other)];
        count += static_cast<std::size_t>(&each != &which && covers(each, which));
      }
      return count;
    };
    if (covered(label) >= most_) {
      return;
    }
    const auto added = static_cast<int>(labels_.size());
    labels_.push_back(label);
    node.push_back(added);
    // One after the other: those that go no longer count for the next.
    for (std::size_t i = 0; i < node.size();) {
      const Label& each = labels_[static_cast<std::size_t>(node[i])];
      const bool goes = node[i] != added && covers(labels_.back(), each) && covered(each) >= most_;
      if (goes) {
        node.erase(node.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  Plan plan_of(int winner) const {
    Plan plan{.node_sequence = sequence_, .batches = batches_};
    for (int at = winner; at > 0; at = labels_[static_cast<std::size_t>(at)].parent) {
      const Label& label = labels_[static_cast<std::size_t>(at)];
      plan.device_groups.push_back(label.gpus);
      plan.strategies.push_back(label.strategy);
      plan.partition.push_back(label.layers);
    }
    plan.partition.push_back(0);
    std::reverse(plan.device_groups.begin(), plan.device_groups.end());
    std::reverse(plan.strategies.begin(), plan.strategies.end());
    std::reverse(plan.partition.begin(), plan.partition.end());
    return plan;
  }

  const Problem& problem_;
  std::vector<std::string> sequence_;
  std::int64_t batches_;
  std::size_t most_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Option>> options_;
  double least_sync_ = kFar;  ///< of all last stages
  bool short_of_memory_ = false;
  std::vector<Label> labels_;
  std::vector<std::vector<std::vector<int>>> nodes_;  ///< [GPUs used][layers done]
  std::vector<std::pair<double, int>> ends_;          ///< cost and label of the best plans
};

/// Whether some stage may ask for a profile of so many samples: GPUs of one type each have a
/// divisor of the global batch; several types have powers of two, and their mean rounded down.
bool needed(const Problem& problem, std::int64_t samples) {
  if (problem.global_batch % samples == 0) {
    return true;
  }
  if (problem.types().size() == 1) {
    return false;
  }
  for (std::int64_t dp = 1; dp <= problem.gpus(); dp *= 2) {
    for (std::int64_t batch = samples * dp; batch < (samples + 1) * dp; ++batch) {
      if (problem.global_batch % batch == 0) {
        return true;
      }
    }
  }
  return std::has_single_bit(static_cast<std::uint64_t>(samples));
}

}  // namespace

std::vector<Ranked> search(const Problem& problem, std::size_t most, int threads,
                           SearchMemo* memo) {
  std::vector<std::string> sequence = problem.types();
  std::sort(sequence.begin(), sequence.end());
  std::vector<SearchMemo::Part> parts;
  do {
    for (std::int64_t batches = problem.global_batch; batches > 0; --batches) {
      if (problem.global_batch % batches == 0) {
        parts.emplace_back(sequence, batches);
      }
    }
  } while (std::next_permutation(sequence.begin(), sequence.end()));
  std::vector<std::vector<Ranked>> found_by_part(parts.size());
  for_each_in_parallel(parts.size(), threads, [&](std::size_t i) {
    const std::size_t wanted = std::max<std::size_t>(1, most);
    if (std::vector<Plan> known; memo != nullptr && memo->find(parts[i], wanted, known)) {
      for (Plan& plan : known) {
        const Price price = price_plan(problem, plan);
        found_by_part[i].push_back({std::move(plan), price});
      }
      return;
    }
    found_by_part[i] = Search(problem, parts[i].first, parts[i].second, wanted).run();
    if (memo != nullptr) {
      memo->add(parts[i], wanted, found_by_part[i]);
    }
  });
  std::vector<Ranked> found;
  for (std::vector<Ranked>& some : found_by_part) {
    std::ranges::move(some, std::back_inserter(found));
  }
  if (found.empty()) {
    if (problem.flavour == Flavour::kStrict &&
        std::ranges::all_of(problem.profiles.profiles,
                            [](const auto& each) { return each.second.sync_ms() == 0; })) {
      throw no_sync_error(problem);
    }
    const bool memory = std::ranges::any_of(parts, [&](const SearchMemo::Part& part) {
      Search again(problem, part.first, part.second, 1);
      again.run();
      return again.short_of_memory();
    });
    Error error =
        Error(fmt::format("no plan of {} layers and {} samples fits", problem.layers,
                          problem.global_batch))
            .at(problem.profiles.folder)
            .hint(fmt::format("{}profiles are used up to tp {} and {} samples a rank",
                              memory ? "stages need more memory, by Metis's estimate, than the "
                                       "clusterfile gives their GPUs; "
                                     : "",
                              problem.max_tp, problem.max_batch));
    for (const std::string& part : left_out(problem)) {
      error.add_context(part);
    }
    throw error;
  }
  std::stable_sort(found.begin(), found.end(), [](const Ranked& a, const Ranked& b) {
    return a.price.total() < b.price.total();
  });
  if (most > 0 && found.size() > most) {
    found.resize(most);
  }
  return found;
}

std::vector<std::string> left_out(const Problem& problem) {
  std::vector<std::string> parts;
  const std::int64_t most = std::min(problem.max_batch, problem.global_batch);
  for (const std::string& type : problem.types()) {
    for (int tp = 1; tp <= std::min(problem.max_tp, problem.gpus()); tp *= 2) {
      std::vector<std::int64_t> samples;
      for (std::int64_t each = 1; each <= most; ++each) {
        if (needed(problem, each) && problem.profiles.find(type, tp, each) == nullptr) {
          samples.push_back(each);
        }
      }
      for (const std::int64_t each : samples) {
        parts.push_back(fmt::format(
            "{}/DeviceType.{}_tp{}_bs{}.json is missing: no stage on {} runs tp {} with {} {}",
            problem.profiles.folder, type, tp, each, type, tp, each,
            each == 1 ? "sample a rank" : "samples a rank"));
      }
    }
  }
  return parts;
}

}  // namespace lockstep::metis
