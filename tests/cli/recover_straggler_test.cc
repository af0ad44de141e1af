// What is put into a simulation comes out of the what-if analysis of its trace: which rank is slow,
// by which factor, and what it costs. S of the simulations is that of two runs, with the straggler
// and without; S of the analysis replaces the slow worker by one like the others of its stage,
// which is the same question (the S of the whole analysis compares with a mean that holds the slow
// one).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class Recover : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "recover-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Json json_of(const std::string& file) const {
    const FileText text((folder_ / file).string());
    return parse_json(text.view(), file);
  }

  static void run(const std::string& words) {
    ASSERT_EQ(std::system((LOCKSTEP_PROGRAM " " + words).c_str()), 0) << words;
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
        "simulate {} --topology Spectrum-X:g=16 --seed 3 --straggler {} --trace {} --json > {}",
        job, straggler, (folder_ / trace).string(), (folder_ / "simulated.json").string()));
    const Json simulated = json_of("simulated.json");
    return simulated["total_s"].get<double>() / simulated["clean_s"].get<double>();
  }

  void whatif(const std::string& more = "") {
    run(fmt::format("whatif --trace {} --meta {} -o {} {} > {} 2>&1", (folder_ / "s.csv").string(),
                    (folder_ / "s.yaml").string(), (folder_ / "out").string(), more,
                    (folder_ / "whatif.txt").string()));
  }

  /// Several workers: asked with what is slow mended, a step takes what it did without.
  void expect_mended(const std::string& straggler, const std::string& edits) {
    SCOPED_TRACE(straggler);
    const double wanted = simulate(kStages, straggler);
    EXPECT_GT(wanted, 1.05);
    whatif(edits);
    const FileText text((folder_ / "whatif.txt").string());
    const std::string said(text.view());
    std::smatch found;
    ASSERT_TRUE(std::regex_search(said, found, std::regex("edited: ([0-9.]+) s a step"))) << said;
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_NEAR(causes["step_time_s"].get<double>() / std::stod(found[1]) / wanted, 1, 0.01);
  }

  void expect(const std::string& job, const std::string& straggler, int rank, double factor,
              double tolerance = 0.01) {
    SCOPED_TRACE(straggler);
    const double wanted = simulate(job, straggler);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_EQ(causes["slowest_workers"][0]["rank"], rank);
    double replaced_s = 0;
    for (const Json& remedy : causes["remedies"]) {
      if (remedy["remedy"] == "replace-worker") {
        replaced_s = remedy["step_time_s"];
      }
    }
    EXPECT_NEAR(causes["step_time_s"].get<double>() / replaced_s / wanted, 1, tolerance);
    if (factor > 0) {
      const std::string text = causes["causes"].dump();
      std::smatch found;
      ASSERT_TRUE(std::regex_search(text, found, std::regex("is ([0-9.]+) times slower"))) << text;
      EXPECT_NEAR(std::stod(found[1]) / factor, 1, 0.02);
    }
  }

  fs::path folder_;
};

TEST_F(Recover, Gpu) {
  expect("gpu:14:1.2", 14, 1.2);
  expect("gpu:9:1.63", 9, 1.63);
}

// With tensor parallelism the peers of the slow rank wait within every pass, so that their passes
// are as long as its own.
TEST_F(Recover, GpuAmongTensorParallelPeers) {
  const std::string job =
      "--model llama3-8b --gpus 16 --pp 2 --tp 4 --sp --mbs 1 --global-batch 16 --seq 2048";
  // rank = 8 stage + 4 dp_rank + tp_rank.
  expect(job, "gpu:13:1.3", 13, 1.3);
  const Json worst = json_of("out/causes-simulated.json")["slowest_workers"][0];
  EXPECT_EQ(worst["stage"], 1);
  EXPECT_EQ(worst["dp_rank"], 1);
  EXPECT_EQ(worst["tp_rank"], 1);
}

// The slow rank's long passes hide transfers that a quick one's would not.
TEST_F(Recover, GpuAmongContextParallelPeers) {
  expect("--model llama3-8b --gpus 16 --pp 2 --tp 2 --cp 2 --mbs 1 --global-batch 16 --seq 4096",
         "gpu:6:1.4", 6, 1.4, 0.02);
  EXPECT_EQ(json_of("out/causes-simulated.json")["slowest_workers"][0]["cp_rank"], 1);
}

TEST_F(Recover, GpuAmongExpertParallelPeers) {
  expect("--model mixtral-8x7b --gpus 16 --pp 2 --ep 4 --mbs 1 --global-batch 32 --seq 1024",
         "gpu:10:1.3", 10, 1.3);
}

// Half of the time at 1 / 2: a pass takes 1 / (0.5 + 0.5 / 2) = 1.333 times as long.
TEST_F(Recover, Thermal) { expect("thermal:13:2:2ms:0.5", 13, 4 / 3.0); }

// A draw whose size only the seed knows.
TEST_F(Recover, Jitter) { expect("jitter:9:exponential:0.5", 9, 0); }

// Servers have eight GPUs: the second one has stages 2 and 3, all of them slow.
TEST_F(Recover, Node) {
  expect_mended(
      "node:1:1.3",
      "--set 'compute[rank=8-15] *= 0.76923077' --set 'optimizer[rank=8-15] *= 0.76923077'");
}

TEST_F(Recover, Stage) { expect_mended("stage:2:1.4", "--set 'compute[stage=2] *= 0.71428571'"); }

// A trace of a slow worker as the straggler of another simulation.
TEST_F(Recover, Trace) {
  simulate(kStages, "gpu:9:1.63", "measured.csv");
  expect("trace:" + (folder_ / "measured.csv").string(), 9, 1.63);
}

TEST_F(Recover, GarbageCollection) { expect("gc:6:30ms:60ms", 6, 0); }

}  // namespace
}  // namespace lockstep
