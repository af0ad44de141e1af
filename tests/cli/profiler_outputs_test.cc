// What profile writes is read by the commands that it is for. The device is made up; the files are
// those of `profile --from`.
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/exact/vocabulary.h"
#include "generator/model/zoo.h"
#include "profiler/aceso_profile.h"
#include "profiler/profile_plan.h"
#include "tests/support/fake_device.h"
#include "tests/support/run.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

using Words = std::vector<std::string>;
Words joined(Words a, const Words& b, const Words& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

/// Measurements of a job in a file.
void write_measurements(const std::string& path, const std::vector<Kernel>& kernels) {
  write_file(path, to_measurements_json(measured(kernels)));
}

TEST(ProfileOutputs, GenerateSimulateAndAicbTakeAJobs) {
  const ScratchFolder folder;
  Job job;
  job.model = find_model("llama3-8b", {{"layers", 2}});
  job.seq = 1024;
  job.gpu_type = "H200";
  write_measurements(folder / "m.json", plan_profile(with_padded_vocabulary(job)).kernels);
  const Words flags{"--model", "llama3-8b", "--num-layers", "2",          "--gpus",
                    "1",       "--seq",     "1024",         "--gpu-type", "H200"};
  const RunResult written =
      run(joined({"profile"}, flags, {"--from", folder / "m.json", "-o", folder / "out"}));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("TFLOP/s"));
  std::string profile, aiob;
  for (const auto& entry : fs::directory_iterator(folder / "out")) {
    const std::string name = entry.path().string();
    profile = name.ends_with(".profile.json") ? name : profile;
    aiob = name.ends_with(".txt") ? name : aiob;
  }
  const RunResult generated =
      run(joined({"generate"}, flags, {"--profile", profile, "-o", folder / "w.json"}));
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_THAT(generated.err,
              HasSubstr("operators measured, 0 between two measured sizes, 0 by the roofline"));
  // AICB's reader: other times, other workload.
  const auto layers = [&](const Words& more) {
    return run(joined({"generate", "--generator", "simai-training", "--model", "gpt-7b",
                       "--world_size", "8", "--tp", "1", "--num_layers", "2", "--aiob_enable"},
                      more, {"-o", "-"}))
        .out;
  };
  const std::string with = layers({"--comp_filepath", aiob});
  EXPECT_THAT(with, HasSubstr("attention"));
  EXPECT_NE(with, layers({}));
}

TEST(ProfileOutputs, AcesosPlannerTakesItsTables) {
  const ScratchFolder folder;
  std::vector<Kernel> kernels;
  for (const std::int64_t mbs : {1, 2}) {
    for (const std::int64_t tp : {1, 2}) {
      for (const int algorithm : {0, 1}) {
        for (const AcesoOp& op : aceso_ops({"scale-layer", mbs, tp, algorithm})) {
          kernels.insert(kernels.end(), op.forward.begin(), op.forward.end());
          kernels.insert(kernels.end(), op.backward.begin(), op.backward.end());
        }
      }
    }
  }
  write_measurements(folder / "m.json", kernels);
  const RunResult written =
      run({"profile", "--aceso-size", "scale-layer", "--aceso-mbs", "1,2", "--aceso-tp", "1,2",
           "--from", folder / "m.json", "-o", folder / "out"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  for (const auto& entry :
       fs::directory_iterator(LOCKSTEP_SOURCES "/tests/data/plan/scale-layer")) {
    if (entry.path().filename().string().starts_with("p")) {  // prim_… and p2p_… are of no profile
      fs::copy_file(entry.path(), fs::path(folder / "out") / entry.path().filename());
    }
  }
  const RunResult planned =
      run({"plan", "--aceso-model", "scale-layer", "--aceso-size", "2layers", "--profiles",
           folder / "out", "--gpus-per-node", "2", "--nodes", "2", "--memory-limit", "100000",
           "--global-batch", "16", "--micro-batch", "1", "2"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("proven"));
}

/// Tables of one H200; the transfers between GPUs, of which one GPU has none, are made up.
TEST(ProfileOutputs, AcesosPlannerPlansWithMeasuredTables) {
  const ScratchFolder folder;
  fs::create_directories(folder / "tables");
  const fs::path sources(LOCKSTEP_SOURCES);
  for (const fs::path& from :
       {sources / "workloads/profiles/h200/aceso", sources / "tests/data/plan/scale-layer"}) {
    for (const auto& entry : fs::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".csv") && (name.starts_with("gpt_1_3B") || name.starts_with("p2p"))) {
        fs::copy_file(entry.path(), fs::path(folder / "tables") / name);
      }
    }
  }
  const RunResult planned =
      run({"plan", "--aceso-model", "gpt", "--aceso-size", "1_3B", "--profiles", folder / "tables",
           "--gpus-per-node", "2", "--nodes", "2", "--memory-limit", "100000", "--global-batch",
           "64", "--micro-batch", "1", "2", "4"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("gpt 1_3B on 4 GPUs"));
  EXPECT_THAT(planned.out, HasSubstr("proven"));
}

/// Truth: steps that PyTorch took on the GPU that the profiles are of (bench/gpt_step_torch.py), in
/// workloads/profiles/GPU/steps.json. Error: at most 5 % on an H200, 6 % on an H100.
TEST(MeasuredSteps, ArePredictedFromProfiles) {
  for (const auto& [gpu, name, most] :
       {std::tuple{"H200", "h200", 0.05}, std::tuple{"H100", "h100", 0.06}}) {
    const fs::path folder = fs::path(LOCKSTEP_SOURCES) / "workloads/profiles" / name;
    const std::string file = (folder / "steps.json").string();
    const FileText text(file);
    const Json document = parse_json(text.view(), file);
    ASSERT_EQ(document["steps"].size(), 3U);
    for (const Json& step : document["steps"]) {
      Words words{"simulate"};
      const std::string job = step["job"];
      for (const std::string_view word : split_blanks(job)) {
        words.emplace_back(word);
      }
      const RunResult done = run(
          joined(words, {"--gpu-type", gpu, "--topology", "single-switch:g=1,gpus-per-server=1"},
                 {"--engine", "flow", "--json", "--profile",
                  (folder / step["profile"].get<std::string>()).string()}));
      ASSERT_EQ(done.exit_code, 0) << done.err;
      EXPECT_THAT(done.err, HasSubstr(" 0 between two measured sizes, 0 by the roofline"));
      const double predicted = parse_json(done.out, "step")["total_s"];
      const double measured = step["measured_s"];
      EXPECT_NEAR(predicted / measured, 1, most) << gpu << ' ' << step["job"];
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
