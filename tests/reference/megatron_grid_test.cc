// The best regular plan of each recorded run of gen_megatron_plan: time and memory to the last
// printed digit.
#include "planner/aceso/megatron_grid.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/reference.h"

namespace lockstep::aceso::megatron_grid_test {
namespace {

namespace fs = std::filesystem;

TEST(MegatronGrid, EveryRecordedRun) {
  LOCKSTEP_NEEDS_REFERENCE();
  const fs::path folder = fs::path(testing::reference_dir()) / "planner" / "aceso";
  int runs = 0;
  for (const auto& run : fs::directory_iterator(folder / "megatron_grid")) {
    SCOPED_TRACE(run.path().filename().string());
    const std::string command = testing::slurp(run.path() / "cmd.txt");
    std::map<std::string, std::vector<std::string>> flags;
    std::string flag;
    for (const std::string_view word : split_blanks(command)) {
      if (word.starts_with("--")) {
        flag = word;
      } else {
        flags[flag].emplace_back(word);
      }
    }
    const auto number = [&](const char* name) { return std::stoi(flags.at(name).at(0)); };
    std::vector<std::int64_t> microbatches;
    for (const std::string& value : flags.at("--micro-batch-size")) {
      microbatches.push_back(std::stoi(value));
    }
    const Model model = find_model(flags.at("--model-name").at(0), flags.at("--model-size").at(0));
    const Cluster cluster{.nodes = number("--num-nodes"),
                          .gpus_per_node = number("--num-gpus-per-node"),
                          .memory_limit_mb = static_cast<double>(number("--memory-limit"))};
    const std::string set =
        flags.at("--profiled-time-path").at(0).find("eurosys") != std::string::npos
            ? "profiled-time-eurosys"
            : "profiled-time-miniset";
    const Database database =
        read_database((folder / set).string(), model, microbatches, cluster.gpus_per_node);
    const auto [plans, bound_ms, exact, fitting, removed] =
        megatron_grid({.database = &database,
                       .model = &model,
                       .cluster = cluster,
                       .global_batch = number("--global-batch-size"),
                       .microbatches = microbatches,
                       .max_tp = cluster.gpus_per_node});
    const std::string log = testing::slurp(run.path() / "stdout.log");
    const std::string wanted = fmt::format("best_0|{:.2f}|{:.2f}|", plans.front().price.time_ms,
                                           plans.front().price.memory_mb);
    EXPECT_NE(log.find(wanted), std::string::npos) << wanted;
    ++runs;
  }
  EXPECT_GT(runs, 5);
}

}  // namespace
}  // namespace lockstep::aceso::megatron_grid_test
