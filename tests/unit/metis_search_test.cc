// Metis's problem on a made-up cluster: the search against trying every plan, strict and fixed.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "planner/metis/memory.h"
#include "planner/metis/outlook.h"
#include "planner/metis/search.h"
#include "planner/metis/space.h"
#include "planner/metis/uniform.h"
#include "tests/support/metis_problem.h"
#include "tests/support/run.h"

namespace lockstep::metis::metis_search_test {
namespace {

/// Whether each stage's layers fit, by Metis's estimate.
bool fits(const Problem& problem, const Plan& plan) {
  const std::vector<Rank> ranks = ranks_of(problem, plan.node_sequence);
  int first = 0;
  for (std::size_t s = 0; s < plan.device_groups.size(); ++s) {
    const StageMemory memory(problem, ranks, first, plan.device_groups[s], plan.strategies[s],
                             plan.batches);
    if (!memory.known() ||
        memory.demand_mb(plan.partition[s], plan.partition[s + 1]) > memory.room_mb()) {
      return false;
    }
    first += plan.device_groups[s];
  }
  return true;
}

/// Calls f with every plan: orders of types, groups of 1, 2 or 4 GPUs, tp 1 or 2, layers cut
/// anywhere, whole samples a rank, which is a mean where a stage is on both types.
void every_plan(const Problem& problem, const std::function<void(const Plan&)>& f) {
  for (const auto& order : {std::vector<std::string>{"A100", "T4"}, {"T4", "A100"}}) {
    for (const std::int64_t batches : {1, 2, 3, 4, 6, 8}) {
      if (problem.global_batch % batches != 0) {
        continue;
      }
      Plan plan;
      plan.node_sequence = order;
      plan.batches = batches;
      plan.partition = {0};
      const std::function<void(int)> stage = [&](int used) {
        if (used == 4) {
          if (plan.partition.back() == problem.layers) {
            f(plan);
          }
          return;
        }
        for (const int gpus : {1, 2, 4}) {
          for (int tp = 1; tp <= std::min(gpus, 2); tp *= 2) {
            const std::int64_t dp = gpus / tp;
            const bool mixed = used < 2 && used + gpus > 2;
            const std::int64_t samples = problem.global_batch / dp / batches;
            if (used + gpus > 4 || samples < 1 || samples > problem.max_batch ||
                (!mixed && samples * dp * batches != problem.global_batch)) {
              continue;
            }
            const std::int64_t begin = plan.partition.back();
            for (std::int64_t end = begin + 1; end <= problem.layers; ++end) {
              plan.device_groups.push_back(gpus);
              plan.strategies.push_back({static_cast<int>(dp), tp});
              plan.partition.push_back(end);
              stage(used + gpus);
              plan.device_groups.pop_back();
              plan.strategies.pop_back();
              plan.partition.pop_back();
            }
          }
        }
      };
      stage(0);
    }
  }
}

TEST(MetisSearch, IsTheBestOfAllPlans) {
  for (const auto& [flavour, samples] : {std::pair(Flavour::kStrict, 8),
                                         {Flavour::kFixed, 8},
                                         {Flavour::kStrict, 6},
                                         {Flavour::kFixed, 6}}) {
    Problem problem = testing::metis_problem(flavour);
    problem.global_batch = samples;
    double best = std::numeric_limits<double>::infinity();
    int plans = 0;
    every_plan(problem, [&](const Plan& plan) {
      if (!fits(problem, plan)) {
        return;
      }
      try {
        best = std::min(best, price_plan(problem, plan).total());
        EXPECT_TRUE(soundness(problem, plan).warnings.empty())
            << fmt::format("{}", fmt::join(soundness(problem, plan).warnings, "; "));
        ++plans;
      } catch (const Error&) {  // a profile is missing
      }
    });
    ASSERT_GT(plans, 90);
    const std::vector<Ranked> found = search(problem).plans;
    EXPECT_NEAR(found.front().price.total(), best, 1e-9 * std::abs(best))
        << (flavour == Flavour::kFixed ? "fixed" : "strict");
  }
}

TEST(MetisSearch, FindsTheBestTwentyOfAllPlansOnAnyNumberOfThreads) {
  const Problem problem = testing::metis_problem(Flavour::kStrict);
  std::vector<double> all;
  every_plan(problem, [&](const Plan& plan) {
    if (!fits(problem, plan)) {
      return;
    }
    try {
      all.push_back(price_plan(problem, plan).total());
    } catch (const Error&) {  // a profile is missing
    }
  });
  std::ranges::sort(all);
  ASSERT_GT(all.size(), 20U);
  for (const int threads : {1, 3}) {
    const std::vector<Ranked> found = search(problem, {.most = 20, .threads = threads}).plans;
    ASSERT_EQ(found.size(), 20U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].price.total(), all[i], 1e-9 * all[i]) << i;
    }
  }
}

// Ended after so many labels it has a plan and a bound, and says that they meet only where they do.
TEST(MetisSearch, EndsAtAnyEffortWithAPlanAndABound) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    const Problem problem = testing::metis_problem(flavour);
    const double best = search(problem).plans.front().price.total();
    int proven = 0, open = 0;
    for (std::int64_t effort = 1; effort < 20000; effort += 1 + effort / 2) {
      for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{5}}) {
        const SearchResult result = search(problem, {.most = most, .max_work = effort});
        const double found = result.plans.front().price.total();
        EXPECT_GE(found, best - 1e-9 * best);
        EXPECT_LE(result.bound_ms, best + 1e-9 * best);
        if (result.exact) {
          EXPECT_NEAR(found, best, 1e-9 * best) << effort;
          ++proven;
        } else {
          EXPECT_TRUE(most != 1 || result.bound_ms < found) << effort;
          ++open;
        }
      }
    }
    EXPECT_GT(proven, 0);
    EXPECT_GT(open, 0);
  }
}

// What outlook.h says of every plan's beginnings is no more than what comes; and the plans that it
// has are plans of the space.
TEST(MetisOutlook, IsBelowWhatEveryPlanTakes) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    const Problem problem = testing::metis_problem(flavour);
    int compared = 0;
    for (const auto& order : {std::vector<std::string>{"A100", "T4"}, {"T4", "A100"}}) {
      const std::vector<Rank> ranks = ranks_of(problem, order);
      for (const std::int64_t batches : {1, 2, 4, 8}) {
        std::vector<std::vector<StageOption>> options;
        for (int first = 0; first <= problem.gpus(); ++first) {
          options.push_back(stage_options(problem, ranks, first, batches));
        }
        const Outlook outlook(problem, ranks, options, batches);
        every_plan(problem, [&](const Plan& plan) {
          if (plan.node_sequence != order || plan.batches != batches || !fits(problem, plan)) {
            return;
          }
          Price price;
          try {
            price = price_plan(problem, plan);
          } catch (const Error&) {  // a profile is missing
            return;
          }
          const double all = price.execution + price.pipeline + price.synchronisation;
          double in_front = 0, slowest = 0;
          int used = 0;
          for (std::size_t s = 0; s < plan.device_groups.size(); ++s) {
            EXPECT_LE(in_front + outlook.left(used, plan.partition[s], slowest),
                      all + 1e-9 * std::abs(all));
            ++compared;
            const auto& here = options[static_cast<std::size_t>(used)];
            const auto option = std::ranges::find_if(here, [&](const StageOption& each) {
              return each.gpus == plan.device_groups[s] && each.strategy == plan.strategies[s];
            });
            ASSERT_NE(option, here.end());
            const double time = option->time(plan.partition[s], plan.partition[s + 1]);
            slowest = std::max(slowest, time);
            in_front += time;
            if (s + 1 < plan.device_groups.size()) {
              const int end = used + plan.device_groups[s] + plan.device_groups[s + 1];
              in_front += transfer_ms(problem, ranks, used, end, plan.strategies[s], batches,
                                      plan.partition[s + 1]);
            }
            used += plan.device_groups[s];
          }
        });
        for (Plan& plan : outlook.plans(options)) {
          plan.node_sequence = order;
          EXPECT_TRUE(soundness(problem, plan).warnings.empty());
        }
      }
    }
    EXPECT_GT(compared, 100);
  }
}

TEST(MetisSearch, NamesTheProfilesThatAreMissing) {
  Problem problem = testing::metis_problem(Flavour::kStrict);
  EXPECT_TRUE(left_out(problem).empty());
  problem.max_batch = 4;  // of 8 samples: 1, 2 and 4 a rank
  const std::vector<std::string> parts = left_out(problem);
  ASSERT_EQ(parts.size(), 4U);  // two types, tp 1 and 2
  EXPECT_NE(parts[3].find("DeviceType.T4_tp2_bs4.json is missing: no stage on T4 runs tp 2 with 4 "
                          "samples a rank"),
            std::string::npos)
      << parts[3];
}

// Two stages of two GPUs, dp 2, 2 microbatches of 2 samples a rank, 3 + 1 layers.
TEST(MetisSearch, SaysWhereMemoryLeavesNoPlan) {
  Problem problem = testing::metis_problem(Flavour::kStrict);
  const auto told = [&] {
    try {
      search(problem);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (Node& node : problem.nodes) {
    node.memory = node.type_memory = 1;
  }
  EXPECT_NE(told().find("stages need more memory, by Metis's estimate"), std::string::npos);
  problem = testing::metis_problem(Flavour::kStrict);
  problem.max_batch = 0;
  EXPECT_NE(told().find("hint: profiles are used up to tp 2 and 0 samples"), std::string::npos);
}

TEST(MetisSearch, SaysWhyAPlanThatHasAPriceIsLeftOut) {
  struct Case {
    const char* warning;
    std::vector<int> groups;
    std::vector<Strategy> strategies;
    std::int64_t samples, batches;
    std::vector<std::int64_t> partition;
    bool fits = true;
  };
  for (const Case& one : {
           Case{"", {2, 2}, {{1, 2}, {2, 1}}, 8, 4, {0, 1, 4}},
           Case{"layers 0 to 3 of 4", {2, 2}, {{2, 1}, {2, 1}}, 8, 4, {0, 1, 3}},
           Case{"stage 0 has no layers", {2, 2}, {{2, 1}, {2, 1}}, 8, 4, {0, 0, 4}},
           Case{"uses 2 GPUs; the cluster has 4", {2}, {{2, 1}}, 8, 4, {0, 4}},
           Case{"3 microbatches leave out 2 of 8", {2, 2}, {{2, 1}, {2, 1}}, 8, 3, {0, 1, 4}},
           Case{"stage 1 has dp 3 and tp 1, not", {1, 3}, {{1, 1}, {3, 1}}, 6, 3, {0, 1, 4}},
           Case{"stage 0 has tp 4, above --max-tp 2", {4}, {{1, 4}}, 8, 8, {0, 4}},
           Case{"stage 0 has 4 samples a rank, not", {2, 2}, {{2, 1}, {1, 2}}, 8, 1, {0, 1, 4}},
           Case{"stage 1 leaves out 1 of 3 samples", {2, 2}, {{1, 2}, {2, 1}}, 9, 3, {0, 1, 4}},
           // Of 10: 4, 4, 1 and 1.
           Case{"4 samples at once in a group", {4}, {{4, 1}}, 10, 1, {0, 4}},
           // 5 x (1600 + 1600 + 1200), and 0.001
           Case{"stage 1 needs 22000.0 MB by Metis's estimate, its GPUs have 20480.0",
                {2, 2},
                {{2, 1}, {2, 1}},
                8,
                2,
                {0, 1, 4},
                false},
       }) {
    SCOPED_TRACE(one.warning);
    Problem problem = testing::metis_problem(Flavour::kStrict);
    problem.global_batch = one.samples;
    problem.nodes[1].type_memory = one.fits ? 40 : 10;
    for (const int tp : {1, 2, 4}) {  // of which the estimates are, as with 2 samples
      for (const std::int64_t samples : {1, 3, 4, 8}) {
        problem.profiles.profiles.try_emplace({"A100", tp, samples},
                                              problem.profiles.profiles.at({"A100", 1, 2}));
      }
    }
    const Soundness sound = soundness(problem, Plan{.node_sequence = {"A100", "T4"},
                                                    .device_groups = one.groups,
                                                    .strategies = one.strategies,
                                                    .batches = one.batches,
                                                    .partition = one.partition});
    EXPECT_EQ(sound.fits, one.fits);
    const std::string all = fmt::format("{}", fmt::join(sound.warnings, "; "));
    EXPECT_EQ(all.empty(), *one.warning == 0) << all;
    EXPECT_NE(all.find(one.warning), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace lockstep::metis::metis_search_test
