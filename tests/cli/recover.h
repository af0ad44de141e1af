#pragma once

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/sanitized.h"

namespace lockstep {

/// What is put into a simulation comes out of the what-if analysis of its trace: which rank is
/// slow, by which factor, and what it costs. S of the simulations is that of two runs, with the
/// straggler and without; S of the analysis replaces the slow worker by one like the others of its
/// stage, which is the same question (the S of the whole analysis compares with a mean that holds
/// the slow one).
class Recover : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "recover-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Json json_of(const std::string& file) const {
    const FileText text((folder_ / file).string());
    return parse_json(text.view(), file);
  }

  static void run(const std::string& words) {
    ASSERT_EQ(std::system((LOCKSTEP_PROGRAM " " + words).c_str()), 0) << words;
  }

  /// What a step would take with a remedy, in seconds; 0 where it is not told.
  static double with_remedy(const Json& causes, std::string_view name) {
    for (const Json& remedy : causes["remedies"]) {
      if (remedy["remedy"] == name) {
        return remedy["step_time_s"];
      }
    }
    return 0;
  }

  /// 16 ranks: four stages of four data-parallel ranks; rank = 4 stage + dp_rank.
  static constexpr const char* kStages =
      "--model llama3-8b --gpus 16 --pp 4 --mbs 1 --global-batch 32 --seq 2048";

  void expect(const std::string& straggler, int rank, double factor) {
    expect(kStages, straggler, rank, factor);
  }

  /// Writes a trace, and returns S of the simulations with the straggler and without.
  double simulate(const std::string& job, const std::string& straggler,
                  const std::string& trace = "s.csv") {
    run(fmt::format(
        "simulate {} --topology Spectrum-X:g={} --seed 3 --straggler {} --trace {} --json > {}",
        job, cluster_gpus_, straggler, (folder_ / trace).string(),
        (folder_ / "simulated.json").string()));
    const Json simulated = json_of("simulated.json");
    return simulated["total_s"].get<double>() / simulated["clean_s"].get<double>();
  }

  void whatif(const std::string& more = "") {
    run(fmt::format("whatif --trace {} --meta {} -o {} {} > {} 2>&1", (folder_ / "s.csv").string(),
                    (folder_ / "s.yaml").string(), (folder_ / "out").string(), more,
                    (folder_ / "whatif.txt").string()));
  }

  /// Two stages of eight data-parallel ranks, each stage a server: whatever goes from stage to
  /// stage crosses NICs, that of data-parallel rank d from GPU d over node 18 + d, its rail's leaf,
  /// to GPU 8 + d and back. Gradients stay on NVLink.
  static constexpr const char* kServers =
      "--model llama3-8b --gpu-type B300 --gpus 16 --pp 2 --mbs 1 --global-batch 64 --seq 8192";

  /// What a step of the trace takes with these edits, in seconds; 0 where whatif does not say.
  double edited(const std::string& edits) {
    whatif(edits);
    const FileText text((folder_ / "whatif.txt").string());
    const std::string said(text.view());
    std::smatch found;
    const bool is_said = std::regex_search(said, found, std::regex("edited: ([0-9.]+) s a step"));
    EXPECT_TRUE(is_said) << said;
    return is_said ? std::stod(found[1]) : 0;
  }

  /// Several workers, or links: asked with what is slow mended, a step takes what it did without.
  void expect_mended(const std::string& straggler, const std::string& edits,
                     const std::string& job = kStages, double at_least = 1.05) {
    SCOPED_TRACE(straggler);
    const double wanted = simulate(job, straggler);
    EXPECT_GT(wanted, at_least);
    const double edited_s = edited(edits);
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_NEAR(causes["step_time_s"].get<double>() / edited_s / wanted, 1, 0.01);
  }

  void expect(const std::string& job, const std::string& straggler, int rank, double factor,
              double tolerance = 0.01) {
    SCOPED_TRACE(straggler);
    const double wanted = simulate(job, straggler);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_EQ(causes["slowest_workers"][0]["rank"], rank);
    const double replaced_s = with_remedy(causes, "replace-worker");
    EXPECT_NEAR(causes["step_time_s"].get<double>() / replaced_s / wanted, 1, tolerance);
    const Json& cause = causes["causes"][0];
    EXPECT_EQ(cause["cause"], "worker");
    EXPECT_EQ(cause["ranks"], Json({rank})) << cause.dump();
    if (factor > 0) {
      EXPECT_NEAR(cause["factor"].get<double>() / factor, 1, 0.02);
    }
  }

  /// A part of the fabric that one data-parallel rank's messages between stages cross: between
  /// whom, how many times as long they take, and S when they take what the others' take.
  void expect_slow_messages(const std::string& straggler, int dp_rank, double factor) {
    SCOPED_TRACE(straggler);
    const double wanted = simulate(kServers, straggler);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    ASSERT_EQ(causes["causes"].size(), 1U) << causes["causes"].dump();
    const Json& cause = causes["causes"][0];
    EXPECT_EQ(cause["cause"], "communication");
    EXPECT_EQ(cause["confidence"], 1);
    EXPECT_NE(cause["what"].get<std::string>().find("-pp-comm"), std::string::npos);
    std::vector<int> ranks = cause["ranks"].get<std::vector<int>>();
    std::ranges::sort(ranks);
    EXPECT_EQ(ranks, (std::vector<int>{dp_rank, 8 + dp_rank}));
    if (factor > 0) {
      EXPECT_NEAR(cause["factor"].get<double>() / factor, 1, 0.02);
    }
    const double mended_s = with_remedy(causes, "mend-transfers");
    EXPECT_NEAR(causes["step_time_s"].get<double>() / mended_s / wanted, 1, 0.01);
  }

  /// All workers of some stages: which, and how many times as long as on the others they take
  /// beside what they do without the straggler.
  void expect_slow_stages(const std::string& straggler, const std::string& stages) {
    SCOPED_TRACE(straggler);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    ASSERT_FALSE(causes["causes"].empty());
    EXPECT_EQ(causes["causes"][0]["cause"], "stage");
    EXPECT_NE(causes["causes"][0]["evidence"].get<std::string>().find(stages), std::string::npos)
        << causes["causes"].dump();
  }

  std::filesystem::path folder_;
  int cluster_gpus_ = 16;
};

}  // namespace lockstep
