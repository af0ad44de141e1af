// Our cost model against Metis's own on every plan it listed, and our search against its best.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "planner/metis/memory.h"
#include "planner/metis/search.h"
#include "planner/metis/uniform.h"
#include "tests/support/reference.h"

namespace lockstep::metis::metis_test {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(testing::reference_dir()) / "planner" / "metis"; }

/// The file that Metis's folder listed first, which its model-wide values come from.
std::string first_listed(const std::string& set) {
  const std::string text = testing::slurp(folder() / "profiles" / "listdir_order.txt");
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split_blanks(line);
    if (words.size() > 1 && words[0] == set) {
      return std::string(words[1]);
    }
  }
  return "";
}

Problem problem_of(const fs::path& run, const std::string& set, std::int64_t max_batch) {
  Problem problem;
  problem.nodes = parse_cluster(testing::slurp(run / "input" / "hostfile"), "hostfile",
                                testing::slurp(run / "input" / "clusterfile.json"), "clusterfile");
  problem.layers = 10;
  problem.global_batch = 128;
  problem.max_batch = max_batch;
  problem.profiles =
      read_profiles((folder() / "profiles" / set).string(), problem.types(), 10, first_listed(set));
  return problem;
}

TEST(Metis, EveryListedPlan) {
  LOCKSTEP_NEEDS_REFERENCE();
  int plans = 0, mixed = 0;
  for (const auto& run : fs::directory_iterator(folder())) {
    if (!fs::exists(run.path() / "vectors.json")) {
      continue;
    }
    SCOPED_TRACE(run.path().filename().string());
    const Json file = Json::parse(testing::slurp(run.path() / "vectors.json"));
    const Problem problem = problem_of(run.path(), file["profile"].get<std::string>(), 16);
    for (const Json& one : file["plans"]) {
      Plan plan{.node_sequence = one["node_sequence"].get<std::vector<std::string>>(),
                .device_groups = one["device_groups"].get<std::vector<int>>(),
                .batches = one["batches"],
                .partition = one["layer_partition"].get<std::vector<std::int64_t>>()};
      for (const Json& strategy : one["strategies"]) {
        plan.strategies.push_back({strategy[0], strategy[1]});
      }
      const Price price = price_plan(problem, plan);
      const double wanted = one["true_cost"];
      EXPECT_NEAR(price.total(), wanted, 1e-12 * wanted) << one.dump();
      const double parts[] = {price.execution, price.synchronisation, price.update,
                              price.data_parallel, price.pipeline};
      for (std::size_t p = 0; p < 5; ++p) {
        EXPECT_NEAR(parts[p], one["parts"][p].get<double>(), 1e-12 * wanted) << p;
      }
      // Metis lists only what its estimate of memory allows.
      const std::vector<Rank> ranks = ranks_of(problem, plan.node_sequence);
      int first = 0;
      for (std::size_t s = 0; s < plan.strategies.size(); ++s) {
        const StageMemory memory(problem, ranks, first, plan.device_groups[s], plan.strategies[s],
                                 plan.batches);
        ASSERT_TRUE(memory.known()) << one.dump();
        EXPECT_LE(memory.demand_mb(plan.partition[s], plan.partition[s + 1]), memory.room_mb())
            << s << " of " << one.dump();
        mixed += static_cast<int>(!alike(problem, ranks, first, plan.device_groups[s]));
        first += plan.device_groups[s];
      }
      ++plans;
    }
  }
  EXPECT_GT(plans, 300);
  EXPECT_GT(mixed, 10);
}

// "3, 4829.03203980819, UniformPlan(dp=8, pp=1, tp=1, mbs=1, gbs=128)" a line.
TEST(Metis, EveryUniformPlan) {
  LOCKSTEP_NEEDS_REFERENCE();
  int plans = 0;
  for (const char* run : {"homo_a100_2x4_gbs128", "homo_a100_4x4_gbs128"}) {
    SCOPED_TRACE(run);
    const Problem problem = problem_of(folder() / run, "prof_a100", 4);
    const std::string text = testing::slurp(folder() / run / "ranking.txt");
    for (const std::string_view line : split(text, '\n')) {
      UniformPlan plan;
      double wanted = 0;
      if (std::sscanf(std::string(line).c_str(),
                      "%*d, %lf, UniformPlan(dp=%d, pp=%d, tp=%d, mbs=%ld, gbs=128)", &wanted,
                      &plan.dp, &plan.pp, &plan.tp, &plan.mbs) != 5) {
        continue;
      }
      EXPECT_NEAR(price_plan(problem, plan).total(), wanted, 1e-12 * wanted) << line;
      ++plans;
    }
  }
  EXPECT_EQ(plans, 27 + 36);
}

TEST(Metis, TheSearchEndsAtTheOptimum) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::pair<const char*, double> cases[] = {{"het_mix_4x4_readme", 3825.42},
                                                  {"het_mix22_4x4_readme", 4465.66}};
  for (const auto& [run, wanted] : cases) {
    const Problem problem = problem_of(folder() / run, "prof_a100_t4", 4);
    const std::vector<Ranked> found = search(problem).plans;
    EXPECT_NEAR(found.front().price.total(), wanted, 0.006) << run;
    EXPECT_EQ(found.front().plan.partition.back(), 10);
  }
}

}  // namespace
}  // namespace lockstep::metis::metis_test
