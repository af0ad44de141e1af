// The search against trying everything: a model small enough for all cuts, choices and flags.
#include <limits>

#include <gtest/gtest.h>

#include "planner/aceso/search/stage_solver.h"

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

}  // namespace
}  // namespace lockstep::aceso::aceso_search_test
