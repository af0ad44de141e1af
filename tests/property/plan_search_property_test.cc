// The planner's search against trying everything: on small spaces every plan is replayed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/exact/memory.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stages.h"
#include "planner/job/job_search.h"
#include "planner/job/job_sensitivity.h"
#include "planner/job/other_speeds.h"
#include "tests/support/exact_models.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep::plan_search_property_test {
namespace {

struct Space {
  Topology topology = topology_from("Spectrum-X:g=16,gps=4");
  JobProblem problem;
  std::map<std::string, PricedStep> prices;

  Space() {
    problem.base.model = testing::llama(5, 1024, 8, 8, 4096, 8192);
    problem.base.seq = 2048;
    problem.base.global_batch = 16;
    problem.base.gpus = 8;
    problem.axes.gpus = {8};
    problem.topology = &topology;
    problem.operator_time = [this] { return testing::roofline_of(problem.base); };
    problem.limits.gpus_per_server = 4;
    problem.memory_limit = Bytes(4'000'000'000);
    problem.threads = 1;
  }

  PricedStep price(const Job& job) {
    const std::string key = plan_text(job) + job.rank_order;
    const auto [found, is_new] = prices.try_emplace(key);
    if (is_new) {
      FlowOptions flow;
      flow.routes.pxn = true;  // as `simulate` does
      const StepResult step = testing::replay_job(job, topology, problem.operator_time(), flow);
      found->second.step_s = step.total.seconds();
      found->second.compute_s = step.compute.seconds();
    }
    return found->second;
  }

  /// Every plan of the space that fits, priced.
  std::vector<JobPlan> all() {
    std::vector<JobPlan> plans;
    LeftOut left_out;
    StepBound bound(topology, problem.operator_time());
    for (const Job& node : job_nodes(problem.base, problem.axes, problem.limits, left_out)) {
      const Job whole = with_model(problem.base, node);
      for (const Job& leaf : job_leaves(whole, problem.axes, problem.limits, left_out)) {
        JobPlan plan{leaf, peak_memory(memory_by_stage(leaf)), bound.of(leaf), true, {}};
        if (plan.memory <= problem.memory_limit) {
          plan.step = price(leaf);
          plans.push_back(std::move(plan));
        }
      }
    }
    return plans;
  }

  JobSearchResult search() {
    return search_jobs(
        problem, [this](const Job& job, const PriceLimits&) { return price(job); },
        [](std::int64_t) {});
  }
};

void expect_best(Space& space, std::size_t least_plans = 20) {
  const std::vector<JobPlan> plans = space.all();
  ASSERT_GT(plans.size(), least_plans);
  double best = 1e300;
  for (const JobPlan& plan : plans) {
    best = std::min(best, objective_value(space.problem, plan));
    EXPECT_LE(plan.floor.step_s, plan.step.step_s) << plan_text(plan.job);
  }
  const JobSearchResult found = space.search();
  ASSERT_FALSE(found.plans.empty());
  EXPECT_TRUE(found.proven);
  EXPECT_DOUBLE_EQ(objective_value(space.problem, found.plans.front()), best);
  EXPECT_DOUBLE_EQ(found.bound, best);
  EXPECT_LT(found.replays, static_cast<std::int64_t>(plans.size())) << "nothing was pruned";
}

TEST(PlanSearch, FindsTheFastestPlan) {
  Space space;
  space.problem.axes.micro_batch = {1, 2};
  space.problem.axes.recompute = {Recompute::kNone, Recompute::kFull};
  space.problem.axes.cp = {1, 2};
  space.problem.axes.sequence_parallel = {true, false};
  expect_best(space);
}

/// Layers of each virtual stage, all splits different; and the search with them is exact.
TEST(PlanSearch, SpreadsLayersOverStagesInMoreThanOneWay) {
  Space space;
  space.problem.base.model = testing::llama(10, 1024, 8, 8, 4096, 8192);
  space.problem.axes.pp = {4};
  space.problem.axes.cp = {1};
  space.problem.axes.vpp = {1, 2};
  space.problem.axes.micro_batch = {1};
  space.problem.axes.sharding = {Sharding::kNone};
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.sequence_parallel = {false};
  LeftOut left_out;
  for (const Job& node :
       job_nodes(space.problem.base, space.problem.axes, space.problem.limits, left_out)) {
    std::map<std::vector<std::int64_t>, int> times;
    for (const Job& leaf : job_leaves(with_model(space.problem.base, node), space.problem.axes,
                                      space.problem.limits, left_out)) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(leaf.pp * leaf.vpp));
      const auto stages = cut_into_stages({.layers = 10,
                                           .pp = leaf.pp,
                                           .vpp = leaf.vpp,
                                           .first_layers = leaf.first_stage_layers,
                                           .last_layers = leaf.last_stage_layers,
                                           .counts = leaf.stage_layers});
      for (std::size_t s = 0; s < stages.size(); ++s) {
        for (std::size_t k = 0; k < stages[s].size(); ++k) {
          counts[k * stages.size() + s] = stages[s][k].layers;
        }
      }
      ++times[counts];
    }
    for (const auto& [counts, count] : times) {
      EXPECT_EQ(count, 1) << ::testing::PrintToString(counts);
    }
    EXPECT_TRUE(times.contains({2, 3, 3, 2}));  // even
    EXPECT_TRUE(times.contains({3, 2, 3, 2}));  // longest first, a shorter one, the last shorter
    EXPECT_TRUE(times.contains({3, 3, 3, 1}));
  }
  expect_best(space, 10);
}

TEST(PlanSearch, FindsTheFastestPlanOfExperts) {
  Space space;
  space.problem.base.model = testing::llama(4, 512, 8, 8, 1024, 4096, 8);
  space.problem.axes.cp = {1};
  space.problem.axes.micro_batch = {1};
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.sharding = {Sharding::kNone, Sharding::kZero1};
  expect_best(space);
}

TEST(PlanSearch, FindsTheLeastEnergyAndTheCheapestNumberOfGpus) {
  Space space;
  space.problem.axes.cp = {1};
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.sharding = {Sharding::kZero1};
  space.problem.objective = PlanObjective::kEnergy;
  space.problem.rates = {2, 700, 150};
  expect_best(space);
  space.problem.axes.gpus = {4, 8, 16};
  space.problem.objective = PlanObjective::kCost;
  expect_best(space);
  EXPECT_LT(space.search().plans.front().job.gpus, 16);  // more GPUs wait more
}

TEST(PlanSearch, CountsAsFittingWhatTheGeneratorSays) {
  Space space;
  space.problem.axes.cp = {1};
  space.problem.axes.micro_batch = {1};
  space.problem.memory_limit = Bytes(1'200'000'000);
  space.problem.objective = PlanObjective::kMemory;  // takes every cut apart
  LeftOut left_out;
  std::int64_t fit = 0, all = 0;
  Bytes least = space.problem.memory_limit;
  for (const Job& node :
       job_nodes(space.problem.base, space.problem.axes, space.problem.limits, left_out)) {
    const Job whole = with_model(space.problem.base, node);
    for (const Job& leaf : job_leaves(whole, space.problem.axes, space.problem.limits, left_out)) {
      const Bytes need = peak_memory(memory_by_stage(leaf));
      fit += need <= space.problem.memory_limit ? 1 : 0;
      least = std::min(least, need);
      ++all;
    }
  }
  const JobSearchResult found = space.search();
  EXPECT_EQ(found.leaves, all);
  EXPECT_EQ(found.fitting, fit);
  EXPECT_LT(fit, all);
  EXPECT_EQ(found.plans.front().memory, least);
}

TEST(PlanSearch, DoesNotDependOnThreads) {
  std::vector<std::string> texts;
  for (const int threads : {1, 3}) {
    Space space;
    space.problem.threads = threads;
    space.problem.axes.recompute = {Recompute::kNone};
    space.problem.effort = 1;
    const std::function<OperatorTime()> time = space.problem.operator_time;
    const JobSearchResult found = search_jobs(
        space.problem,
        [&](const Job& job, const PriceLimits&) {  // no shared state: called from several threads
          PricedStep step;
          step.step_s = testing::replay_job(job, space.topology, time()).total.seconds();
          step.work = 1;
          return step;
        },
        [](std::int64_t) {});
    EXPECT_FALSE(found.proven);
    EXPECT_LT(found.bound, found.plans.front().step.step_s);
    std::string text;
    for (const auto* list : {&found.plans, &found.front, &found.next, &found.misses}) {
      for (const JobPlan& plan : *list) {
        text += plan_text(plan.job) + " " + std::to_string(plan.step_s()) + "\n";
      }
    }
    texts.push_back(text);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

/// A replay need not go on once its step is slower than the best: the choice is the same, and so is
/// all else on any number of threads.
TEST(PlanSearch, GivesUpReplaysThatAreBeaten) {
  std::vector<std::string> texts;
  for (const int threads : {1, 2, 5}) {
    Space space;
    space.problem.threads = threads;
    space.problem.axes.recompute = {Recompute::kNone};
    const JobSearchResult whole = space.search();
    std::mutex mutex;
    std::int64_t given_up = 0;
    const JobSearchResult found = search_jobs(
        space.problem,
        [&](const Job& job, const PriceLimits& limits) -> Price {
          const std::lock_guard lock(mutex);
          const PricedStep step = space.price(job);
          if (step.step_s <= limits.enough_s) {
            return step;
          }
          ++given_up;
          return Price(3, limits.enough_s);
        },
        [](std::int64_t) {});
    EXPECT_TRUE(found.proven);
    EXPECT_EQ(plan_text(found.plans.front().job), plan_text(whole.plans.front().job));
    EXPECT_DOUBLE_EQ(found.bound, whole.bound);
    EXPECT_FALSE(found.beaten.empty());
    EXPECT_LE(std::ssize(found.beaten), given_up);
    EXPECT_EQ(found.replays, std::ssize(found.plans));
    std::string text = fmt::format("{} {}\n", found.work, found.beaten.size());
    for (const auto* list : {&found.plans, &found.front, &found.beaten, &found.next}) {
      for (const JobPlan& plan : *list) {
        text += fmt::format("{} {} {}\n", plan_text(plan.job), plan.step_s(), plan.beyond_s);
        EXPECT_TRUE(plan.beyond_s == 0 || plan.beyond_s >= whole.bound) << plan_text(plan.job);
      }
    }
    texts.push_back(text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

/// A step longer than that has a larger value, and a shorter one a smaller.
TEST(PlanSearch, KnowsTheLongestStepOfAValue) {
  Space space;
  space.problem.rates = {2, 700, 150};
  JobPlan plan;
  plan.job.gpus = 16;
  plan.floor.compute_s = 0.25;
  plan.priced = true;
  for (const PlanObjective objective :
       {PlanObjective::kTime, PlanObjective::kCost, PlanObjective::kEnergy}) {
    space.problem.objective = objective;
    plan.step.step_s = 0.75;
    const double value = objective_value(space.problem, plan);
    EXPECT_NEAR(longest_step_s(space.problem, plan, value), 0.75, 1e-12);
    plan.step.step_s = 0.76;
    EXPECT_GT(objective_value(space.problem, plan), value);
  }
  space.problem.objective = PlanObjective::kMemory;
  EXPECT_EQ(longest_step_s(space.problem, plan, 1e9), std::numeric_limits<double>::infinity());
}

/// What is too large keeps its bound: nothing is claimed of it, and the best of the rest is found.
TEST(PlanSearch, LeavesWhatIsTooLargeToItsBound) {
  Space space;
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.cp = {1};
  const auto too_large = [](const Job& job) { return job.vpp > 1 || job.tp == 1; };
  double best = 1e300, least_left = 1e300;
  for (const JobPlan& plan : space.all()) {
    double& least = too_large(plan.job) ? least_left : best;
    least = std::min(least, too_large(plan.job) ? plan.floor.step_s : plan.step.step_s);
  }
  std::int64_t asked = 0;
  const JobSearchResult found = search_jobs(
      space.problem,
      [&](const Job& job, const PriceLimits&) -> Price {
        if (too_large(job)) {
          ++asked;
          return Price(1);
        }
        return space.price(job);
      },
      [](std::int64_t) {});
  EXPECT_DOUBLE_EQ(found.plans.front().step.step_s, best);
  EXPECT_GT(found.too_large, asked);  // those like them are not asked for
  ASSERT_LT(least_left, best) << "the case must have a bound below the best";
  EXPECT_FALSE(found.proven);
  EXPECT_DOUBLE_EQ(found.bound, least_left);
}

TEST(PlanSearch, TakesTheSimplerPricesWhereTheFirstReplayIsTooLarge) {
  Space space;
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.cp = {1};
  bool simple = false;
  int times = 0;
  space.problem.simplify = [&] {
    simple = true;
    ++times;
    return true;
  };
  const JobSearchResult found = search_jobs(
      space.problem,
      [&](const Job& job, const PriceLimits&) {
        return simple ? Price(space.price(job)) : Price(1);
      },
      [](std::int64_t) {});
  EXPECT_EQ(times, 1);
  EXPECT_EQ(found.too_large, 0);
  EXPECT_TRUE(found.proven);
  EXPECT_TRUE(found.plans.front().priced);
}

TEST(PlanSearch, HasAPlanThoughNoneCanBeReplayedOrItIsStopped) {
  Space space;
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.cp = {1};
  for (const bool stopped : {false, true}) {
    space.problem.stop = [stopped] { return stopped; };
    const JobSearchResult found = search_jobs(
        space.problem, [](const Job&, const PriceLimits&) { return Price(1); },
        [](std::int64_t) {});
    ASSERT_EQ(found.plans.size(), 1U);
    EXPECT_FALSE(found.plans.front().priced);
    EXPECT_FALSE(found.proven);
    EXPECT_EQ(found.stopped, stopped);
    EXPECT_LE(found.bound, found.plans.front().floor.step_s);
  }
}

/// What each plan of the space takes on a cluster with NICs of this rate.
std::map<std::string, double> prices_with_nics_of(const Space& space,
                                                  const std::vector<JobPlan>& plans, double gbps) {
  const Topology topology = topology_from(fmt::format("Spectrum-X:g=16,gps=4,nic={}Gbps", gbps));
  std::map<std::string, double> prices;
  for (const JobPlan& plan : plans) {
    FlowOptions flow;
    flow.routes.pxn = true;
    prices[plan_text(plan.job)] = testing::replay_job(with_model(space.problem.base, plan.job),
                                                      topology, space.problem.operator_time(), flow)
                                      .total.seconds();
  }
  return prices;
}

/// Prices a plan of the space on its cluster with other rates.
PriceJobAt price_at(const Space& space) {
  return [&space](const Job& job, const Speeds& speeds, std::int64_t) -> Price {
    FlowOptions flow;
    flow.routes.pxn = true;
    const OperatorTime time = [of = space.problem.operator_time(), speeds](const Operator& op) {
      return Time::seconds(of(op).seconds() / speeds.compute);
    };
    PricedStep priced;
    priced.step_s =
        testing::replay_job(job, with_speeds(*space.problem.topology, speeds), time, flow)
            .total.seconds();
    return priced;
  };
}

/// The search's choice is replayed on clusters with slower NICs: where the table says that it
/// changes, it does, by as much as it says, and where another plan is much better, the table says
/// so.
TEST(PlanSearch, SensitivityNamesWhatChangesTheChoice) {
  Space space;
  space.problem.axes.gpus = {16};
  space.problem.base.gpus = 16;
  space.problem.axes.cp = {1};
  space.problem.axes.micro_batch = {1};
  space.problem.axes.recompute = {Recompute::kNone};
  space.problem.axes.sharding = {Sharding::kNone, Sharding::kZero1};
  const std::vector<JobPlan> plans = space.all();
  const JobSearchResult found = space.search();
  ASSERT_TRUE(found.proven);
  const std::string choice = plan_text(found.plans.front().job);
  const std::vector<TippingPoint> points = tipping_points(space.problem, found, price_at(space));
  const auto point = std::ranges::find(points, "lower NIC bandwidth", &TippingPoint::what);
  ASSERT_NE(point, points.end());
  EXPECT_TRUE(point->replayed);
  ASSERT_GT(point->factor, 0) << "16 GPUs of 4 servers on slow NICs take other plans";
  std::map<std::string, double> then = prices_with_nics_of(space, plans, 400 * point->factor);
  EXPECT_NEAR(then.at(plan_text(point->instead.job)) / then.at(choice), 1 - point->gain, 1e-6);
  EXPECT_GT(point->gain, 0.0009);
  for (const double factor : {1.25, 1.5, 2.0, 3.0, 4.0, 8.0}) {
    if (1 / factor > point->factor) {  // not said to change: nothing is better by much
      then = prices_with_nics_of(space, plans, 400 / factor);
      const auto best =
          std::ranges::min_element(then, {}, [](const auto& plan) { return plan.second; });
      EXPECT_GT(best->second, 0.95 * then.at(choice)) << "NICs at 1 / " << factor;
    }
  }
}

/// Without replays closed forms stand for them, and the table says so.
TEST(PlanSearch, SensitivityTellsClosedForms) {
  Space space;
  space.problem.axes.cp = {1};
  const JobSearchResult found = space.search();
  for (const TippingPoint& point :
       tipping_points(space.problem, found,
                      [](const Job&, const Speeds&, std::int64_t) { return Price(0); })) {
    EXPECT_TRUE(!point.replayed || point.what.ends_with("memory")) << point.what;
  }
}

/// The changes that are tried of a plan lead to plans that the search looks at, too: else one of
/// them might be better already.
TEST(PlanSearch, ChangesOfAPlanStayInTheSpace) {
  Space space;
  space.problem.axes.rank_order = {"tp-cp-ep-dp-pp"};
  std::set<std::string> all;
  std::vector<JobPlan> plans;
  LeftOut left_out;
  for (const Job& node :
       job_nodes(space.problem.base, space.problem.axes, space.problem.limits, left_out)) {
    const Job whole = with_model(space.problem.base, node);
    for (Job& leaf : job_leaves(whole, space.problem.axes, space.problem.limits, left_out)) {
      all.insert(plan_text(leaf));
      if (all.size() % 7 == 0) {
        leaf.model = {};
        plans.push_back({std::move(leaf), {}, {}, false, {}});
      }
    }
  }
  ASSERT_GT(plans.size(), 20U);
  int changes = 0;
  for (const JobPlan& plan : plans) {
    for (const PlanVariant& each : neighbours(space.problem, plan)) {
      EXPECT_TRUE(all.contains(plan_text(each.plan.job)))
          << plan_text(plan.job) << ": " << each.what << ": " << plan_text(each.plan.job);
      ++changes;
    }
  }
  EXPECT_GT(changes, 100);
}

/// The table's memory limit is the one at which the search takes another plan.
TEST(PlanSearch, SensitivityNamesTheMemoryThatChangesTheChoice) {
  Space space;
  space.problem.axes.cp = {1};
  space.problem.axes.micro_batch = {1};
  space.problem.axes.sharding = {Sharding::kNone, Sharding::kZero1};
  const JobSearchResult found = space.search();
  const std::vector<TippingPoint> points = tipping_points(space.problem, found, price_at(space));
  const auto less = std::ranges::find(points, "less memory", &TippingPoint::what);
  ASSERT_NE(less, points.end());
  ASSERT_GT(less->factor, 0);
  const double limit = static_cast<double>(space.problem.memory_limit.count()) * less->factor;
  const std::string choice = plan_text(found.plans.front().job);
  space.problem.memory_limit = Bytes(std::llround(limit));
  EXPECT_EQ(plan_text(space.search().plans.front().job), choice);
  space.problem.memory_limit = Bytes(std::llround(limit) - 1);
  const JobSearchResult tighter = space.search();
  EXPECT_NE(plan_text(tighter.plans.front().job), choice);
  EXPECT_NEAR(tighter.plans.front().step_s() / found.plans.front().step_s(), 1 - less->gain, 1e-9);
  // Backwards: from there more memory gives the choice back.
  const std::vector<TippingPoint> back = tipping_points(space.problem, tighter, price_at(space));
  const auto more = std::ranges::find(back, "more memory", &TippingPoint::what);
  ASSERT_NE(more, back.end());
  EXPECT_GT(more->factor, 1);
  EXPECT_LE(more->factor * static_cast<double>(space.problem.memory_limit.count()), limit + 1);
}

TEST(PlanSearch, PinsHold) {
  Space space;
  space.problem.axes.tp = {2};
  space.problem.axes.vpp = {1};
  space.problem.axes.sharding = {Sharding::kZero1};
  for (const JobPlan& plan : space.search().plans) {
    EXPECT_EQ(plan.job.tp, 2);
    EXPECT_EQ(plan.job.vpp, 1);
    EXPECT_EQ(plan.job.sharding, Sharding::kZero1);
  }
}

TEST(PlanSearch, SaysWhyNothingFits) {
  Space space;
  space.problem.memory_limit = Bytes(1'000'000);
  try {
    space.search();
    FAIL() << "a model of 100 M parameters fits into 1 MB";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more memory than 976.6 KiB"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep::plan_search_property_test
