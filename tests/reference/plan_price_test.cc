// `lockstep plan --price`: plans as Aceso and Metis write them, at what the two systems say.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/text.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::plan_price_test {
namespace {

namespace fs = std::filesystem;

fs::path planner() { return fs::path(testing::reference_dir()) / "planner"; }

/// What the command prints, or null, which no comparison likes.
Json price(std::vector<std::string> words, const std::string& plan) {
  words.insert(words.begin(), "plan");
  words.insert(words.end(), {"--price", plan, "--json"});
  const testing::RunResult result = testing::run(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0 ? Json::parse(result.out) : Json();
}

std::vector<std::string> aceso(const std::string& model, const std::string& size,
                               const std::string& profiles, int gpus, int nodes, double limit_mb) {
  return {"--aceso-model",   model,
          "--aceso-size",    size,
          "--profiles",      (planner() / "aceso" / profiles).string(),
          "--gpus-per-node", std::to_string(gpus),
          "--nodes",         std::to_string(nodes),
          "--memory-limit",  std::to_string(limit_mb)};
}

TEST(PlanPrice, AcesosOwnPlansAsItPredictsThem) {
  LOCKSTEP_NEEDS_REFERENCE();
  struct Run {
    const char *folder, *model, *size;
    double ms, mb;  ///< specs/planners.md 9.1, as printed there
  };
  for (const Run& run : {Run{"gpt_1_3B_small", "gpt", "1_3B", 58760.92, 11976.22},
                         Run{"t5_770M_small", "t5", "770M", 33659.50, 11981.22},
                         Run{"resnet_1B_small", "resnet", "1B", 17672.05, 11965.59}}) {
    SCOPED_TRACE(run.folder);
    const fs::path folder = planner() / "aceso" / "runs" / run.folder / "top_configs";
    for (const auto& file : fs::directory_iterator(folder)) {
      const Json ours = price(aceso(run.model, run.size, "profiled-time-miniset", 4, 1, 12000),
                              file.path().string());
      EXPECT_NEAR(ours["time_s"].get<double>() * 1000, run.ms, 0.005);
      EXPECT_NEAR(ours["memory_bytes"].get<double>() / (1 << 20), run.mb, 0.005);
      EXPECT_TRUE(ours["fits"].get<bool>());
    }
  }
}

/// One stage's part of [[value, count], …] over all ops.
Json part(const Json& runs, std::size_t from, std::size_t count) {
  Json values = Json::array();
  std::size_t at = 0;
  for (const Json& run : runs) {
    for (std::size_t n = run[1]; n > 0; --n, ++at) {
      if (at >= from && at < from + count) {
        values.push_back(run[0]);
      }
    }
  }
  return values;
}

/// Aceso's file of a recorded plan.
Json plan_file(const Json& vector) {
  Json plan = {{"global_batch_size", vector["global_bs"]},
               {"micro_batch_size", vector["micro_bs"]},
               {"num_gpus", vector["num_gpus"]},
               {"num_ops_in_each_stage", vector["num_ops"]}};
  std::size_t from = 0;
  for (std::size_t s = 0; s < vector["num_ops"].size(); ++s) {
    const std::size_t count = vector["num_ops"][s];
    plan["model_parallel_size_of_each_op"].push_back(part(vector["tp"], from, count));
    plan["data_parallel_size_of_each_op"].push_back(part(vector["dp"], from, count));
    plan["algo_of_each_op"].push_back(part(vector["algo"], from, count));
    plan["recompute_ops"].push_back(part(vector["recompute"][s], 0, count));
    from += count;
  }
  return plan;
}

TEST(PlanPrice, RecordedPlansOfAceso) {
  LOCKSTEP_NEEDS_REFERENCE();
  const ScratchFolder folder;
  int plans = 0;
  for (const auto& entry : fs::directory_iterator(planner() / "aceso" / "vectors")) {
    const Json file = Json::parse(testing::slurp(entry.path()));
    for (std::size_t v = 0; v < file["vectors"].size(); v += 10) {
      SCOPED_TRACE(entry.path().filename().string() + " " + std::to_string(v));
      const Json& vector = file["vectors"][v];
      write_file(folder / "plan.json", plan_file(vector).dump());
      const Json ours = price(aceso(file["model"], file["size"], file["db"], file["gpus_per_node"],
                                    file["nodes"], file["memory_limit"]),
                              folder / "plan.json");
      double slowest = 0;
      for (std::size_t s = 0; s < vector["time_list"].size(); ++s) {
        const Json& stage = ours["stages"][s];
        const double ms = vector["time_list"][s], mb = vector["memory_list"][s];
        EXPECT_NEAR(stage["time_s"].get<double>() * 1000, ms, 1e-12 * ms);
        EXPECT_NEAR(stage["memory_bytes"].get<double>() / (1 << 20), mb, 1e-12 * mb);
        slowest = std::max(slowest, ms);
      }
      EXPECT_NEAR(ours["time_s"].get<double>() * 1000, slowest, 1e-12 * slowest);
      ++plans;
    }
  }
  EXPECT_GE(plans, 20);
}

/// The profile that Metis's folder listed first, which its model-wide values come from.
std::string first_listed(const std::string& set) {
  const std::string text = testing::slurp(planner() / "metis" / "profiles" / "listdir_order.txt");
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split_blanks(line);
    if (words.size() > 1 && words[0] == set) {
      return std::string(words[1]);
    }
  }
  return "";
}

TEST(PlanPrice, RecordedPlansOfMetis) {
  LOCKSTEP_NEEDS_REFERENCE();
  const ScratchFolder folder;
  int plans = 0;
  for (const auto& run : fs::directory_iterator(planner() / "metis")) {
    if (!fs::exists(run.path() / "vectors.json")) {
      continue;
    }
    const Json file = Json::parse(testing::slurp(run.path() / "vectors.json"));
    const std::string set = file["profile"];
    for (std::size_t p = 0; p < file["plans"].size(); p += 25) {
      const Json& plan = file["plans"][p];
      write_file(folder / "plan.json", plan.dump());
      const Json ours =
          price({"--metis-hostfile", (run.path() / "input/hostfile").string(),
                 "--metis-clusterfile", (run.path() / "input/clusterfile.json"), "--profiles",
                 (planner() / "metis" / "profiles" / set).string(), "--model-profile",
                 first_listed(set), "--layers", "10", "--gbs", "128", "--cost", "strict"},
                folder / "plan.json");
      const double ms = plan["true_cost"];
      EXPECT_NEAR(ours["time_s"].get<double>() * 1000, ms, 1e-12 * ms) << plan.dump();
      ++plans;
    }
  }
  EXPECT_GE(plans, 20);
}

TEST(PlanPrice, UniformPlansOfMetis) {
  LOCKSTEP_NEEDS_REFERENCE();
  const ScratchFolder folder;
  const fs::path run = planner() / "metis" / "homo_a100_2x4_gbs128";
  struct Case {
    const char* plan;
    double ms;
    bool fits;  ///< the layers of the first take 85,234 MB in its profile, of 81,920
  };
  for (const auto& [plan, ms, fits] :
       {Case{R"({"dp": 8, "pp": 1, "tp": 1, "mbs": 4, "gbs": 128})", 4707.8964235057, false},
        Case{R"({"dp": 1, "pp": 4, "tp": 2, "mbs": 4})", 7827.637568722601, true}}) {
    write_file(folder / "plan.json", plan);
    const Json ours =
        price({"--metis-hostfile", (run / "input/hostfile").string(), "--metis-clusterfile",
               (run / "input/clusterfile.json").string(), "--profiles",
               (planner() / "metis/profiles/prof_a100").string(), "--model-profile",
               first_listed("prof_a100"), "--layers", "10", "--gbs", "128"},
              folder / "plan.json");
    EXPECT_NEAR(ours["time_s"].get<double>() * 1000, ms, 1e-12 * ms) << plan;
    EXPECT_EQ(ours["fits"].get<bool>(), fits);
  }
}

}  // namespace
}  // namespace lockstep::plan_price_test
