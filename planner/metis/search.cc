#include "planner/metis/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "planner/metis/outlook.h"

namespace lockstep::metis {
namespace {

/// Stages in front of a cut, and what they take.
struct Label {
  double slowest = 0, sum = 0, update = 0, gradient = 0;
  double bound = 0;  ///< of all plans that begin so
  int parent = -1;
  int used = 0;
  std::int64_t layers = 0;
  int gpus = 0;
  Strategy strategy;
};

/// What ends the search before it is through.
struct Limits {
  double most = kFar;          ///< plans that take longer are of no interest
  std::int64_t work = 0;       ///< labels looked at; 0: any number
  std::function<bool()> stop;  ///< may be empty
};

/// One order of device types with one number of microbatches.
class Part {
 public:
  Part(const Problem& problem, SearchMemo::Part part, std::size_t most)
      : problem_(problem),
        sequence_(std::move(part.first)),
        batches_(part.second),
        most_(most),
        ranks_(ranks_of(problem, sequence_)) {
    for (int first = 0; first <= gpus(); ++first) {
      options_.push_back(stage_options(problem, ranks_, first, batches_));
      for (const StageOption& option : options_.back()) {
        if (first + option.gpus == gpus()) {
          least_sync_ = std::min(least_sync_, option.sync);
        }
      }
    }
    outlook_.emplace(problem, ranks_, options_, batches_);
  }

  /// Good plans at once.
  std::vector<Ranked> some() const {
    std::vector<Ranked> found;
    for (Plan& plan : outlook_->plans(options_)) {
      plan.node_sequence = sequence_;
      const Price price = price_plan(problem_, plan);
      found.push_back({std::move(plan), price});
    }
    return found;
  }

  bool short_of_memory() const { return outlook_->short_of_memory(); }
  std::int64_t work() const { return work_; }
  /// What the plans take at least that run() did not come to.
  double open() const { return open_; }

  /// The cheapest plans, cheapest first. Once.
  std::vector<Ranked> run(const Limits& limits) {
    limits_ = limits;
    labels_.assign(1, Label{.bound = outlook_->left(0, 0, 0) + batch_ms()});
    nodes_.assign(static_cast<std::size_t>(gpus() + 1),
                  std::vector<std::vector<int>>(static_cast<std::size_t>(problem_.layers + 1)));
    nodes_[0][0].push_back(0);
    bool ended = false;
    for (int used = 0; used < gpus(); ++used) {
      for (std::int64_t done = 0; done < problem_.layers; ++done) {
        // Taken out: stages are added to later nodes only, but the pool moves.
        const std::vector<int> here =
            std::move(nodes_[static_cast<std::size_t>(used)][static_cast<std::size_t>(done)]);
        for (const int label : here) {
          ended =
              ended || (limits.work > 0 && work_ >= limits.work) || (limits.stop && limits.stop());
          if (ended) {
            open_ = std::min(open_, labels_[static_cast<std::size_t>(label)].bound);
            continue;
          }
          for (const StageOption& option : options_[static_cast<std::size_t>(used)]) {
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
    labels_ = {};  // the other parts need the memory
    nodes_ = {};
    return best;
  }

 private:
  int gpus() const { return static_cast<int>(ranks_.size()); }
  double batch_ms() const {
    return static_cast<double>(batches_) * problem_.profiles.model.batch_generator_ms;
  }

  double total(const Label& label, double sync) const {
    return static_cast<double>(batches_ - 1) * label.slowest + label.sum + label.update +
           label.gradient + sync + batch_ms();
  }

  /// What a plan must cost less than to be among the best.
  double beat() const { return ends_.size() < most_ ? kFar : ends_.back().first; }
  /// Whether plans of at least `bound` are of no interest, though sums in another order differ.
  bool hopeless(double bound) const {
    const double least = bound - 1e-9 * std::abs(bound);
    return least >= beat() || least > limits_.most || bound == kFar;
  }

  void end_with(const Label& label, double total) {
    ends_.insert(std::ranges::upper_bound(ends_, total, {}, &std::pair<double, int>::first),
                 {total, static_cast<int>(labels_.size())});
    labels_.push_back(label);
    ends_.resize(std::min(ends_.size(), most_));
  }

  void extend(int parent, const StageOption& option) {
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
    for (std::int64_t end = last ? problem_.layers : before.layers + 1;
         end < problem_.layers + (last ? 1 : 0); ++end) {
      if (!option.holds(before.layers, end)) {
        break;
      }
      ++work_;
      const double time = option.time(before.layers, end);
      label.layers = end;
      label.slowest = std::max(before.slowest, time);
      label.sum = sum + time;
      label.update =
          std::max(before.update, update_ms(problem_, option.strategy, end - before.layers));
      label.gradient = std::max(before.gradient,
                                option.gradient_ms_a_byte *
                                    parameter_bytes(problem_, option.strategy, before.layers, end));
      if (last) {
        label.bound = total(label, option.sync);
        if (label.bound < beat() && !hopeless(label.bound)) {
          end_with(label, label.bound);
        }
        continue;
      }
      if (hopeless(total(label, least_sync_))) {
        break;  // more layers cost more
      }
      label.bound = label.sum + label.update + label.gradient + batch_ms() +
                    outlook_->left(used, end, label.slowest);
      if (!hopeless(label.bound)) {
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
  std::vector<std::vector<StageOption>> options_;
  double least_sync_ = kFar;  ///< of all last stages
  std::optional<Outlook> outlook_;
  Limits limits_;
  std::int64_t work_ = 0;
  double open_ = kFar;
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

/// A part and what was found in it; none where that was known.
struct Searched {
  std::optional<Part> part;
  std::vector<Ranked> found;
};

void cheapest_first(std::vector<Ranked>& plans) {
  std::ranges::stable_sort(plans, {}, [](const Ranked& each) { return each.price.total(); });
}

/// What the last of the `most` best plans takes; infinite if there are fewer.
double total_of_last(std::span<const Searched> searched, std::size_t most) {
  std::vector<double> totals;
  for (const Searched& here : searched) {
    for (const Ranked& ranked : here.found) {
      totals.push_back(ranked.price.total());
    }
  }
  std::ranges::sort(totals);
  return most == 0 || totals.size() < most ? kFar : totals[most - 1];
}

/// Adds the plans that are not among `plans`, of which the `most` best stay.
void add_new(std::vector<Ranked>& plans, std::vector<Ranked> others, std::size_t most) {
  for (Ranked& other : others) {
    if (std::ranges::find(plans, other.plan, &Ranked::plan) == plans.end()) {
      plans.push_back(std::move(other));
    }
  }
  cheapest_first(plans);
  plans.resize(std::min(plans.size(), most));
}

Error nothing_fits(const Problem& problem, bool memory) {
  if (problem.flavour == Flavour::kStrict &&
      std::ranges::all_of(problem.profiles.profiles,
                          [](const auto& each) { return each.second.sync_ms() == 0; })) {
    return no_sync_error(problem);
  }
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
  return error;
}

}  // namespace

SearchResult search(const Problem& problem, const SearchOptions& options) {
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
  const std::size_t wanted = std::max<std::size_t>(1, options.most);
  std::vector<Searched> searched(parts.size());
  // First good plans, which are to be beaten.
  for_each_in_parallel(parts.size(), options.threads, [&](std::size_t i) {
    Searched& here = searched[i];
    std::vector<Plan> known;
    if (options.memo != nullptr && options.memo->find(parts[i], options.most, known)) {
      for (Plan& plan : known) {
        const Price price = price_plan(problem, plan);
        here.found.push_back({std::move(plan), price});
      }
      return;
    }
    here.part.emplace(problem, parts[i], wanted);
    add_new(here.found, here.part->some(), wanted);
  });
  const double enough = total_of_last(searched, options.most);
  for_each_in_parallel(parts.size(), options.threads, [&](std::size_t i) {
    Searched& here = searched[i];
    if (!here.part) {
      return;
    }
    Limits limits{.most = options.most > 0 ? enough : total_of_last({&here, 1}, 1),
                  .stop = options.stop};
    if (options.max_work > 0) {
      limits.work =
          std::max<std::int64_t>(1, options.max_work / static_cast<std::int64_t>(parts.size()));
    }
    std::vector<Ranked> found = here.part->run(limits);
    if (here.part->open() == kFar) {
      here.found = std::move(found);
      if (options.memo != nullptr) {
        options.memo->add(parts[i], options.most, here.found);
      }
    } else {
      add_new(here.found, std::move(found), wanted);
    }
  });
  SearchResult result;
  bool memory = false;
  for (Searched& here : searched) {
    std::ranges::move(here.found, std::back_inserter(result.plans));
    if (here.part) {
      result.bound_ms = std::min(result.bound_ms, here.part->open());
      result.work += here.part->work();
      memory = memory || here.part->short_of_memory();
    }
  }
  if (result.plans.empty()) {
    throw nothing_fits(problem, memory);
  }
  cheapest_first(result.plans);
  if (options.most > 0 && result.plans.size() > options.most) {
    result.plans.resize(options.most);
  }
  const Ranked& last = options.most > 0 ? result.plans.back() : result.plans.front();
  result.exact = result.bound_ms == kFar ||
                 (result.plans.size() >= options.most && result.bound_ms >= last.price.total());
  result.bound_ms = std::min(result.bound_ms, result.plans.front().price.total());
  return result;
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
