// Our cost model against Aceso's own: time of every stage within 1e-12, memory to the last bit.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "planner/aceso/cost.h"
#include "planner/aceso/greedy_recompute.h"
#include "tests/support/reference.h"

namespace lockstep::aceso::aceso_cost_test {
namespace {

namespace fs = std::filesystem;

/// Expands [[value, count], …].
std::vector<int> expand(const Json& runs) {
  std::vector<int> values;
  for (const Json& run : runs) {
    values.insert(values.end(), run[1].get<std::size_t>(), run[0].get<int>());
  }
  return values;
}

Plan plan_of(const Json& vector) {
  Plan plan{.global_batch = vector["global_bs"], .microbatch = vector["micro_bs"]};
  const std::vector<int> tp = expand(vector["tp"]), dp = expand(vector["dp"]),
                         algo = expand(vector["algo"]);
  std::size_t op = 0;
  for (std::size_t s = 0; s < vector["num_gpus"].size(); ++s) {
    Stage stage{.gpus = vector["num_gpus"][s]};
    for (const int flag : expand(vector["recompute"][s])) {
      stage.recompute.push_back(static_cast<char>(flag));
      stage.places.push_back({tp[op], dp[op], algo[op]});
      ++op;
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

void expect_near(double ours, const Json& theirs, const char* what, double scale = 0) {
  const double wanted = theirs;
  EXPECT_NEAR(ours, wanted, 1e-12 * std::max(std::abs(wanted), scale)) << what;
}

void compare(const Json& vector, const Database& database, const Model& model,
             const Cluster& cluster) {
  const Plan plan = plan_of(vector);
  const PlanPrice price = price_plan(plan, database, model, cluster, Flavour::kStrict);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    SCOPED_TRACE("stage " + std::to_string(s));
    const StagePrice& stage = price.stages[s];
    EXPECT_EQ(stage.memory_mb, vector["memory_list"][s].get<double>());
    EXPECT_EQ(stage.reserved_mb, vector["reserved"][s].get<double>());
    const double compute_ms = (stage.forward_us + stage.backward_us + stage.recompute_us) / 1000;
    expect_near(stage.iteration_ms, vector["time_list"][s], "time");
    expect_near(compute_ms, vector["compute_time_list"][s], "compute");
    expect_near(stage.ideal_ms, vector["ideal"][s], "ideal");
    expect_near(stage.efficiency_loss_ms, vector["eff_loss"][s], "loss", compute_ms);
    expect_near(stage.recompute_us / 1000, vector["recomp"][s], "recompute");
    expect_near(stage.efficient_time_ms, vector["efficient_time_list"][s], "efficient time",
                price.time_ms * plan.stages[s].gpus);
  }
  expect_near(price.total_gpu_time, vector["total_gpu_time"], "total GPU time");
}

TEST(AcesoCost, EveryVector) {
  LOCKSTEP_NEEDS_REFERENCE();
  const fs::path folder = fs::path(testing::reference_dir()) / "planner" / "aceso";
  int plans = 0, greedy = 0;
  for (const auto& entry : fs::directory_iterator(folder / "vectors")) {
    SCOPED_TRACE(entry.path().filename().string());
    const Json file = Json::parse(testing::slurp(entry.path()));
    const Model model =
        find_model(file["model"].get<std::string>(), file["size"].get<std::string>());
    const Cluster cluster{.nodes = file["nodes"],
                          .gpus_per_node = file["gpus_per_node"],
                          .memory_limit_mb = file["memory_limit"]};
    const auto microbatches = file["mbs"].get<std::vector<std::int64_t>>();
    const Database database = read_database((folder / file["db"].get<std::string>()).string(),
                                            model, microbatches, cluster.gpus_per_node);
    std::size_t op = 0;
    ASSERT_EQ(database.ops.size(), file["ops"].size());
    for (const Json& run : file["ops"]) {
      for (int n = 0; n < run[1].get<int>(); ++n, ++op) {
        EXPECT_EQ(database.names[static_cast<std::size_t>(database.ops[op])],
                  run[0].get<std::string>());
      }
    }
    for (std::size_t v = 0; v < file["vectors"].size(); ++v) {
      SCOPED_TRACE("vector " + std::to_string(v));
      const Json& vector = file["vectors"][v];
      compare(vector, database, model, cluster);
      ++plans;
      if (vector["recompute_mode"] != "auto") {
        continue;
      }
      const Plan wanted = plan_of(vector);
      std::int64_t first = 0;
      auto behind = static_cast<std::int64_t>(wanted.stages.size());
      for (const Stage& stage : wanted.stages) {
        Stage ours = stage;
        greedy_recompute(ours, first, --behind, wanted.microbatch, database, model,
                         cluster.memory_limit_mb);
        EXPECT_EQ(ours.recompute, stage.recompute) << "first op " << first;
        first += stage.ops();
        ++greedy;
      }
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(greedy, 50);
}

}  // namespace
}  // namespace lockstep::aceso::aceso_cost_test
