// The search against trying everything: a model small enough for all cuts, choices and flags.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "planner/aceso/megatron_grid.h"
#include "planner/aceso/search/search.h"
#include "planner/aceso/search/stage_solver.h"
#include "tests/support/sanitized.h"

namespace lockstep::aceso::aceso_search_test {
namespace {

/// Every (choice, flag) of every op, priced by the cost model itself.
double try_all(const Problem& problem, std::int64_t microbatch, int gpus, std::int64_t first,
               std::int64_t end, std::int64_t behind) {
  const Space space = make_space(problem, microbatch, gpus);
  double best = std::numeric_limits<double>::infinity();
  // A plan of one stage: the ops before and after are left out of the database for the test.
  Database part = *problem.database;
  part.ops.assign(problem.database->ops.begin() + first, problem.database->ops.begin() + end);
  std::vector<std::size_t> choice(part.ops.size(), 0);
  std::vector<char> flag(part.ops.size(), 0);
  const auto next = [&] {
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (flag[i] == 0 && space.recomputable[static_cast<std::size_t>(first) + i] != 0) {
        flag[i] = 1;
        return true;
      }
      flag[i] = 0;
      if (++choice[i] < space.choices.size()) {
        return true;
      }
      choice[i] = 0;
    }
    return false;
  };
  do {
    Stage stage{.gpus = gpus};
    bool legal = true;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const auto op = first + static_cast<std::int64_t>(i);
      legal = legal && space.at(op, choice[i]).allowed;
      const OpTraits& traits = part.traits[static_cast<std::size_t>(part.ops[i])];
      legal = legal && (i == 0 || traits.tunable ||
                        space.choices[choice[i]].tp == space.choices[choice[i - 1]].tp);
      stage.places.push_back(space.choices[choice[i]]);
      stage.recompute.push_back(flag[i]);
    }
    if (!legal) {
      continue;
    }
    const StageMemory memory = stage_memory(stage, 0, behind, microbatch, space.microbatches, part,
                                            *problem.model, Flavour::kStrict);
    if (memory.total_mb > problem.cluster.memory_limit_mb) {
      continue;
    }
    Plan plan{.global_batch = problem.global_batch, .microbatch = microbatch, .stages = {stage}};
    const PlanPrice price =
        price_plan(plan, part, *problem.model, problem.cluster, Flavour::kStrict);
    best = std::min(best, price.stages[0].time_ms * 1000);
  } while (next());
  return best;
}

TEST(AcesoSearch, StagesAgreeWithTryingEverything) {
  const Model model = find_model("scale-layer", "1layers");
  const Database database =
      read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2}, 2);
  int fits = 0, tight = 0;
  for (const double limit : {430.0, 520.0, 640.0, 800.0, 1e5}) {
    for (const int gpus : {1, 2}) {
      const Problem problem{
          .database = &database,
          .model = &model,
          .cluster = {.nodes = 4, .gpus_per_node = gpus, .memory_limit_mb = limit},
          .global_batch = 8,
          .microbatches = {1, 2},
          .max_tp = 2};
      const Space space = make_space(problem, 2, gpus);
      for (std::int64_t first : {1, 3, 7}) {
        const std::int64_t end = first + (gpus == 1 ? 7 : 5), behind = 2;
        StageKind kind{.in_flight = behind + 1,
                       .weight_copies = problem.weight_copies(),
                       .limit = problem.limit(),
                       .sends_across = true};
        const double wanted = try_all(problem, 2, gpus, first, end, behind);
        const Lanes ladder = price_ladder(space);
        const StageAnswer answer = solve_stage(space, kind, ladder, first, end, 1e12, 100'000);
        EXPECT_TRUE(answer.exact);
        EXPECT_EQ(answer.found, wanted < 1e12);
        if (answer.found) {
          EXPECT_NEAR(answer.solution.time_us, wanted, 1e-9 * wanted);
          ++fits;
          tight += limit < 1e5 ? 1 : 0;
        }
        double bound = 0;
        sweep_forward(space, kind, ladder, first, 1e15,
                      [&](std::int64_t at, double us) { bound = at == end ? us : bound; });
        EXPECT_LE(bound, wanted * (1 + 1e-12));
        if (wanted < 1e12) {
          EXPECT_LE(furthest_start(space, kind, ladder, end, wanted), first);
        }
      }
    }
  }
  EXPECT_GT(fits, 10);
  EXPECT_GT(tight, 3);
}

TEST(AcesoSearch, ResnetsListOfOpsIsTheModels) {
  const Model model = find_model("resnet", "1B");  // 3 + 4 + 6 + 3 blocks
  EXPECT_EQ(op_rows(model, std::vector<std::string>(134, "op"), "table").size(), 134U);
  EXPECT_THROW(op_rows(model, std::vector<std::string>(133, "op"), "table"), Error);
}

/// The best pipeline of one microbatch by trying every cut and every number of GPUs of each stage,
/// from the op and the GPU on that the stages before have left: (m - 1) * slowest + sum, in us.
struct AllPipelines {
  const Problem& problem;
  std::vector<Space> spaces;  // by log2 of the GPUs
  std::vector<Lanes> ladders;
  double best_us = std::numeric_limits<double>::infinity();

  AllPipelines(const Problem& of, std::int64_t microbatch) : problem(of) {
    for (const int gpus : {1, 2}) {
      spaces.push_back(make_space(problem, microbatch, gpus));
      ladders.push_back(price_ladder(spaces.back()));
    }
  }
  void try_from(std::int64_t first, int gpu, double slowest, double sum,
                std::int64_t microbatches) {
    if (first == problem.ops() && gpu == problem.cluster.gpus()) {
      best_us = std::min(best_us, static_cast<double>(microbatches - 1) * slowest + sum);
    }
    for (std::size_t log = 0; log < spaces.size(); ++log) {
      const int end_gpu = gpu + (1 << log);
      for (std::int64_t end = first + 1; end_gpu <= problem.cluster.gpus() && end <= problem.ops();
           ++end) {
        const StageKind kind{.in_flight = 1,  // memory is no matter here
                             .weight_copies = problem.weight_copies(),
                             .limit = problem.limit(),
                             .sends_across = end_gpu % problem.cluster.gpus_per_node == 0};
        const StageAnswer answer =
            solve_stage(spaces[log], kind, ladders[log], first, end, 1e12, 100'000);
        if (answer.found) {
          const double us = answer.solution.time_us;
          try_from(end, end_gpu, std::max(slowest, us), sum + us, microbatches);
        }
      }
    }
  }
};

TEST(AcesoSearch, PipelinesAgreeWithTryingEverything) {
  const Model model = find_model("scale-layer", "1layers");
  const Database measured =
      read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2}, 2);
  Rng rng(1, "aceso pipelines");
  int unlike = 0;  // stages of one and of two GPUs
  for (int test = 0; test < testing::cases_of(60); ++test) {
    Database database = measured;
    for (Database::Profile& profile : database.profiles) {
      for (OpCost& cost : profile.costs) {  // some ops like more GPUs, some do not
        const double factor = std::exp(4 * rng.uniform() - 2);
        cost.forward_us *= factor;
        cost.backward_us *= factor;
      }
    }
    const Problem problem{.database = &database,
                          .model = &model,
                          .cluster = {.nodes = 1, .gpus_per_node = 3, .memory_limit_mb = 1e5},
                          .global_batch = rng.between(1, 4),
                          .microbatches = {1},
                          .max_tp = 2};
    AllPipelines all(problem, 1);
    all.try_from(0, 0, 0, 0, problem.global_batch);
    const SearchResult result = search(problem);
    const RankedPlan& best = result.plans.front();
    EXPECT_TRUE(result.exact) << test;
    EXPECT_NEAR(best.price.time_ms * 1000, all.best_us, 1e-6 * all.best_us) << test;
    unlike += best.plan.stages.size() == 2 ? 1 : 0;
  }
  EXPECT_GT(unlike, testing::cases_of(60) / 6);
}

Problem two_servers_of_two(const Database& database, const Model& model, double limit_mb) {
  return {.database = &database,
          .model = &model,
          .cluster = {.nodes = 2, .gpus_per_node = 2, .memory_limit_mb = limit_mb},
          .global_batch = 16,
          .microbatches = {1, 2},
          .max_tp = 2};
}

TEST(AcesoSearch, EndsAtEveryLimitAndMoreMemoryIsNoSlower) {
  const Model model = find_model("scale-layer", "4layers");
  const Database database =
      read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2}, 2);
  double last_ms = std::numeric_limits<double>::infinity();
  for (int step = 0; step < 150; ++step) {
    const double limit = 1157 + step * 0.01;
    const SearchResult result = search(two_servers_of_two(database, model, limit));
    const RankedPlan& best = result.plans.front();
    EXPECT_TRUE(result.exact) << limit;
    EXPECT_LE(best.price.memory_mb, limit);
    EXPECT_LE(best.price.time_ms, last_ms) << limit;
    last_ms = best.price.time_ms;
  }
  EXPECT_LT(last_ms, 35.6);  // 35.62 below 1158.02 MB
}

// Where nothing fits that is known before anything is searched; where little fits an effort holds
// from the first label on, with a plan and a bound.
TEST(AcesoSearch, TightMemoryIsNoHang) {
  const Model model = find_model("scale-layer", "4layers");
  const Database database =
      read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2}, 2);
  try {
    search(two_servers_of_two(database, model, 300));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("microbatch 2: no plan fits 300 MB on 4 GPUs"),
              std::string::npos)
        << error.what();
  }
  for (const double limit : {850.0, 900.0, 1000.0}) {
    const Problem problem = two_servers_of_two(database, model, limit);
    const SearchResult whole = search(problem);
    const SearchResult cut = search(problem, {.max_work = 1});
    EXPECT_LE(cut.work, whole.work);
    EXPECT_LE(cut.bound_ms, whole.plans.front().price.time_ms);
    EXPECT_GE(cut.plans.front().price.time_ms, whole.plans.front().price.time_ms);
    int asked = 0;
    const SearchResult stopped = search(problem, {.stop = [&] { return ++asked > 1; }});
    EXPECT_LE(stopped.work, whole.work);
    EXPECT_LE(stopped.bound_ms, whole.plans.front().price.time_ms);
  }
}

/// The profile after `change` of each op's figures.
template <class F>
Database changed(Database database, F&& change) {
  for (Database::Profile& profile : database.profiles) {
    for (OpCost& cost : profile.costs) {
      change(cost);
    }
  }
  return database;
}

TEST(AcesoSearch, FiguresOfManyDecimalsDoNotExceedTheLimit) {
  const Model model = find_model("scale-layer", "4layers");
  const Database database =
      changed(read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2}, 2),
              [](OpCost& cost) {
                cost.activations_mb += 0.0002;
                cost.weights_mb += 0.0002;
              });
  for (double limit = 1400; limit > 1100;) {
    const SearchResult result = search(two_servers_of_two(database, model, limit));
    EXPECT_LE(result.plans.front().price.memory_mb, limit);
    limit = std::min(limit, result.plans.front().price.memory_mb) - 1e-4;  // just too little for it
  }
}

TEST(AcesoSearch, LabelsThatFitAreKept) {
  const Model model = find_model("scale-layer", "32layers");
  double factor = 1;
  const Database database =
      changed(read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1}, 1),
              [&](OpCost& cost) {  // no two alike
                factor = factor > 1.2 ? factor - 0.3 : factor + 0.0712345;
                cost.forward_us *= factor;
                cost.activations_mb *= factor;
              });
  const auto solve = [&](double limit_mb, std::int64_t labels) {
    const Problem problem{.database = &database,
                          .model = &model,
                          .cluster = {.nodes = 1, .gpus_per_node = 1, .memory_limit_mb = limit_mb},
                          .global_batch = 16,
                          .microbatches = {1},
                          .max_tp = 1};
    const Space space = make_space(problem, 1, 1);
    const StageKind kind{.weight_copies = problem.weight_copies(), .limit = problem.limit()};
    return solve_stage(space, kind, price_ladder(space), 0, problem.ops(), 1e12, labels);
  };
  // Below 7520 MB something must be recomputed. Those of 60 labels an op that had the least bound
  // all turned out too large.
  for (double limit = 7000; limit < 7600; limit += testing::is_sanitized() ? 200 : 25) {
    const StageAnswer few = solve(limit, 60), many = solve(limit, 1000);
    ASSERT_TRUE(few.found && many.found) << limit;
    EXPECT_LE(few.solution.time_us, many.solution.time_us * 1.03) << limit;
  }
}

TEST(AcesoSearch, RegularPlansHoldAllSamples) {
  const Model model = find_model("scale-layer", "4layers");
  const Database database =
      read_database(LOCKSTEP_SOURCE_DIR "/tests/data/plan/scale-layer", model, {1, 2, 3}, 2);
  Problem problem = two_servers_of_two(database, model, 4000);
  problem.global_batch = 3;  // no multiple of 2
  const SearchResult one = megatron_grid(problem);
  ASSERT_EQ(one.removed.size(), 1U);
  EXPECT_EQ(one.removed[0], "microbatch 2: the global batch of 3 is no multiple of it");
  problem.microbatches = {1, 3};  // a microbatch of 3 over 2 ranks would be 1 each
  for (const SearchResult& result : {one, megatron_grid(problem)}) {
    EXPECT_EQ(result.work, static_cast<std::int64_t>(result.plans.size()));
    for (const RankedPlan& ranked : result.plans) {
      EXPECT_EQ(ranked.plan.samples(), 3);
    }
  }
}

TEST(AcesoSearch, SamplesAreThoseThatAreRun) {
  Plan plan{.global_batch = 7, .microbatch = 2, .stages = {{.places = {{1, 1, 0}}}}};
  EXPECT_EQ(plan.samples(), 6);
  plan.microbatch = 3;
  plan.stages[0].places.push_back({1, 2, 0});  // 1 of 3 samples each
  EXPECT_EQ(plan.samples(), 4);
}

}  // namespace
}  // namespace lockstep::aceso::aceso_search_test
