// The planner's search against trying everything: on small spaces every plan is replayed.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "generator/exact/memory.h"
#include "generator/exact/rank_sizes.h"
#include "planner/job/job_search.h"
#include "tests/support/exact_models.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep {
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
      const StepResult step = testing::replay_job(job, topology, problem.operator_time());
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
        problem, [this](const Job& job) { return price(job); }, [](std::int64_t) {});
  }
};

void expect_best(Space& space) {
  const std::vector<JobPlan> plans = space.all();
  ASSERT_GT(plans.size(), 20U);
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
        [&](const Job& job) {  // no shared state: called from several threads
          PricedStep step;
          step.step_s = testing::replay_job(job, space.topology, time()).total.seconds();
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
}  // namespace lockstep
