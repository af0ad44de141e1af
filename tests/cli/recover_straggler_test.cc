// A slow worker: which it is, by which factor, and what it costs (recover.h).
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/recover.h"

namespace lockstep {
namespace {

TEST_F(Recover, Gpu) {
  expect("gpu:14:1.2", 14, 1.2);
  expect("gpu:9:1.63", 9, 1.63);
}

// The last stage takes longer than the others; that is no fault of its workers.
TEST_F(Recover, GpuOfAnyStage) {
  for (int rank = 0; rank < 16; rank += testing::is_sanitized() ? 5 : 1) {
    expect(fmt::format("gpu:{}:1.3", rank), rank, 1.3);
  }
  expect(kServers, "gpu:5:1.2", 5, 1.2);
}

// Of one dp_rank without stages; of chunks that are not as heavy as each other; a little slow.
TEST_F(Recover, GpuOfOtherJobs) {
  expect("--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 2048", "gpu:9:1.3@200ms", 9, 1.3);
  expect("--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 2048", "gpu:3:1.05", 3, 1.05);
  expect("--model llama3-8b --gpus 16 --pp 2 --vpp 2 --mbs 1 --global-batch 64 --seq 2048",
         "gpu:3:1.3", 3, 1.3);
  EXPECT_EQ(json_of("out/causes-simulated.json")["causes"].size(), 1U);
}

// Each is named with its own factor; S is that of replacing all of them. Of two that are equally
// slow replacing one saves nothing. One that costs nothing beside the others is not named.
TEST_F(Recover, SeveralGpus) {
  const auto expect_all = [&](const std::string& job, const std::map<int, double>& factors) {
    std::vector<std::string> specs;
    for (const auto& [rank, factor] : factors) {
      specs.push_back(fmt::format("gpu:{}:{}", rank, factor));
    }
    const std::string stragglers = fmt::format("{}", fmt::join(specs, " --straggler "));
    SCOPED_TRACE(stragglers);
    const double wanted = simulate(job, stragglers);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    std::map<int, double> found;
    for (const Json& cause : causes["causes"]) {
      if (cause["cause"] == "worker") {
        EXPECT_EQ(cause["confidence"], 1);
        found[cause["ranks"][0].get<int>()] = cause["factor"];
      }
    }
    for (const auto& [rank, factor] : factors) {
      EXPECT_NEAR(found[rank] / factor, 1, 0.02);
    }
    EXPECT_EQ(found.size(), factors.size());
    const double replaced_s = with_remedy(causes, "replace-workers");
    EXPECT_NEAR(causes["step_time_s"].get<double>() / replaced_s / wanted, 1, 0.01);
  };
  const std::string alone = "--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 2048";
  expect_all(alone, {{3, 1.3}, {12, 1.3}});
  expect_all(alone, {{0, 1.2}, {7, 1.3}, {8, 1.25}, {15, 1.3}});
  expect_all(kStages, {{5, 1.2}, {8, 1.4}});
  expect_all(alone, {{2, 1.1}, {3, 1.3}, {12, 1.3}});

  simulate(kStages, "gpu:13:1.4 --straggler gpu:1:1.03");
  whatif();
  const Json causes = json_of("out/causes-simulated.json")["causes"];
  EXPECT_EQ(causes[0]["ranks"], Json({13}));
  ASSERT_EQ(causes.size(), 2U) << causes.dump();
  EXPECT_EQ(causes[1]["cause"], "stage");
}

// Weights' gradients are passes of their own, also while a stage waits for messages. Without rows S
// was 26 % off where replacing the slow one leaves another stage as the slowest, as in the last
// job.
TEST_F(Recover, GpuInZeroBubble) {
  const std::string job =
      "--model llama3-8b --gpus 8 --pp 4 --mbs 1 --gbs 64 --seq 2048 --schedule zb-h1";
  for (int rank = 0; rank < 8; rank += testing::is_sanitized() ? 3 : 1) {
    expect(job, fmt::format("gpu:{}:1.3", rank), rank, 1.3);
  }
  expect(
      "--model llama3-8b --num-layers 8 --gpus 4 --tp 2 --pp 2 --mbs 1 --gbs 16 --seq 2048 "
      "--schedule zb-h1",
      "gpu:0:1.6", 0, 1.6);
}

// Collectives that wait for the slow one slow the others' computing down meanwhile, on its own
// stage and where its messages make others late. S was up to 12 % off.
TEST_F(Recover, GpuBesideInterference) {
  const std::string small = "--model llama3-8b --num-layers 8 --mbs 1 --seq 2048 ";
  expect(small + "--gpus 8 --gbs 32 --interference 0.3", "gpu:5:1.65", 5, 1.65);
  expect(small + "--gpus 8 --tp 2 --sp --gbs 32 --interference 0.3", "gpu:5:1.41", 5, 1.41);
  expect(small + "--gpus 16 --pp 2 --vpp 2 --gbs 64 --interference 0.3", "gpu:4:1.87", 4, 1.87);
  // Beside reductions that take as long whoever is slow: the factor was 3.5 % too low.
  expect(small + "--gpus 8 --gbs 64 --zero 2 --interference 0.3", "gpu:5:1.5", 5, 1.5);
  expect(
      "--model mixtral-8x7b --num-layers 8 --gpus 16 --tp 2 --sp --pp 2 --ep 2 --mbs 1 --gbs 64 "
      "--seq 1024 --schedule 1f1b-overlap --zero 2 --interference 0.2",
      "gpu:5:1.7", 5, 1.7);
}

// The norm of the gradients is computed in clipping, which is as much longer (S was 2.4 % off).
TEST_F(Recover, GpuThatClips) {
  expect("--model mixtral-8x7b --num-layers 8 --gpus 3 --mbs 1 --gbs 12 --seq 2048", "gpu:0:1.82",
         0, 1.82);
}

TEST_F(Recover, GpuForAWhile) {
  expect("gpu:9:1.5@300ms", 9, 1.5);
  expect("gpu:9:1.5@100ms-300ms", 9, 1.5);
}

// Parameters are gathered within the passes, so that all dp_ranks wait for the slow one in every
// layer. A pass is modelled as one gather behind its computing.
TEST_F(Recover, GpuWherePassesGatherParameters) {
  const std::string job = "--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 8192 --zero 3";
  expect(job, "gpu:5:1.4", 5, 1.4);
  expect(job + " --tp 2", "gpu:5:1.4", 5, 1.4);
  expect(job + " --tp 2 --pp 2", "gpu:13:1.3", 13, 1.3);
  // Among the context-parallel ranks of the one dp_rank: passes begin when they wait there, too.
  expect(
      "--model llama3-8b --num-layers 8 --gpus 4 --tp 2 --cp 2 --mbs 1 --gbs 32 --seq 8192 --zero "
      "3",
      "gpu:3:1.62", 3, 1.62);
}

// ZeRO-2 reduces gradients in every microbatch. The stages that wait for the slow one get done with
// theirs meanwhile, and are bound by them without it (S was 26 and 15 % off); a stage whose
// reductions span servers finds them shorter behind the late one.
TEST_F(Recover, GpuWhereEveryMicrobatchReduces) {
  const std::string small = "--model llama3-8b --num-layers 8 --mbs 1 --seq 2048 --zero 2 ";
  expect(small + "--gpus 12 --pp 4 --gbs 24 --schedule gpipe", "gpu:9:1.57", 9, 1.57);
  cluster_gpus_ = 64;
  expect(small + "--gpus 64 --tp 4 --pp 2 --gbs 64 --sp", "gpu:8:2", 8, 2);
}

// Only the last backward pass waits for those that hold other replicas of the parameters.
TEST_F(Recover, GpuWhereShardsAreReplicated) {
  const std::string job =
      "--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 4096 --zero 3 --hsdp ";
  expect(job + "4", "gpu:5:1.4", 5, 1.4);
  expect(job + "2", "gpu:12:1.3", 12, 1.3);
}

// Microbatches enter at both ends, and passes run side by side.
TEST_F(Recover, GpuInDualPipe) {
  const std::string job =
      "--model llama3-8b --gpus 8 --pp 4 --mbs 1 --gbs 64 --seq 2048 --schedule dualpipe";
  expect(job, "gpu:3:1.4", 3, 1.4);
  expect(job, "gpu:5:1.3", 5, 1.3);
  expect("--model llama3-8b --gpus 16 --pp 4 --mbs 1 --gbs 64 --seq 2048 --schedule dualpipe",
         "gpu:5:1.4", 5, 1.4);
  // Few stages and layers, so that messages and the end of the step weigh much.
  const std::string small =
      "--model llama3-8b --num-layers 8 --mbs 1 --seq 2048 --pp 2 --schedule dualpipe ";
  expect(small + "--gpus 6 --gbs 48", "gpu:3:1.77", 3, 1.77);
  expect(small + "--gpus 16 --tp 2 --sp --gbs 64", "gpu:10:1.6", 10, 1.6);
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

// The slow rank's long passes hide transfers and reductions that a quick one's would not: a trace
// that says what each worker would wait alone tells how much of them. Without that S was off
// by 1.7, 5.4 and 7.2 %.
TEST_F(Recover, GpuAmongContextParallelPeers) {
  expect("--model llama3-8b --gpus 16 --pp 2 --tp 2 --cp 2 --mbs 1 --global-batch 16 --seq 4096",
         "gpu:6:1.4", 6, 1.4);
  EXPECT_EQ(json_of("out/causes-simulated.json")["slowest_workers"][0]["cp_rank"], 1);
}

TEST_F(Recover, GpuWhosePassesHideReductions) {
  cluster_gpus_ = 32;
  expect(
      "--model llama3-8b --gpus 32 --tp 4 --pp 2 --sp --mbs 1 --gbs 16 --seq 2048 "
      "--schedule gpipe",
      "gpu:10:1.79", 10, 1.79);
  expect("--model llama3-8b --gpus 8 --tp 2 --sp --mbs 1 --gbs 16 --seq 1024 --host-launch 20us",
         "gpu:4:1.86", 4, 1.86);
}

// With one worker a stage there is nobody to compare with: a slow worker looks like a heavy stage.
// So there is no factor, and what the worker is named for says it.
TEST_F(Recover, AWorkerWithoutPeersHasNoFactor) {
  simulate("--model llama3-8b --gpus 4 --pp 4 --mbs 1 --gbs 16 --seq 4096", "gpu:2:1.9");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  EXPECT_EQ(causes["slowest_workers"][0]["rank"], 2);
  ASSERT_FALSE(causes["causes"].empty());
  for (const Json& cause : causes["causes"]) {
    EXPECT_TRUE(!cause.contains("factor") || cause["factor"].is_null()) << cause.dump();
    EXPECT_NE(cause["evidence"].get<std::string>().find("a heavy stage would look the same"),
              std::string::npos)
        << cause.dump();
  }
}

TEST_F(Recover, GpuAmongExpertParallelPeers) {
  expect("--model mixtral-8x7b --gpus 16 --pp 2 --ep 4 --mbs 1 --global-batch 32 --seq 1024",
         "gpu:10:1.3", 10, 1.3);
  // A part of an all-to-all has been moved when the slow one comes to it (S was 4.9 % off).
  expect(
      "--model mixtral-8x7b --num-layers 8 --gpus 16 --tp 4 --sp --ep 4 --mbs 1 --gbs 16 --seq "
      "2048",
      "gpu:10:1.41", 10, 1.41);
}

// Half of the time at 1 / 2: a pass takes 1 / (0.5 + 0.5 / 2) = 1.333 times as long.
TEST_F(Recover, Thermal) {
  expect("thermal:13:2:2ms:0.5", 13, 4 / 3.0);
  expect("thermal:5:2:2ms:0.5", 5, 4 / 3.0);
}

// A draw whose size only the seed knows.
TEST_F(Recover, Jitter) { expect("jitter:9:exponential:0.5", 9, 0); }

// Passes that are now longer and now shorter, as long as others' in all: who waits for the long
// ones waits, and nobody gets that back from the short ones.
TEST_F(Recover, JitterOfMicrobatches) {
  for (const std::string spread : {"uniform:0.5", "lognormal:0.6"}) {
    expect(
        "--model llama3-8b --num-layers 8 --seq 2048 --mbs 1 --gpus 16 --pp 2 --tp 2 --sp --gbs 32",
        "jitter:3:" + spread + ":microbatch", 3, 0);
  }
}

// Where all vary nobody stands apart, also of a heavy stage. (All four of the last one were named,
// and "replaced" by the mean of the other stages.)
TEST_F(Recover, NobodyIsNamedWhereAllVary) {
  for (const std::string spread : {"normal:0.1", "lognormal:0.3"}) {
    simulate(
        "--model llama3-8b --num-layers 8 --seq 4096 --mbs 1 --gpus 16 --pp 4 --gbs 64 --zero 1",
        "jitter:*:" + spread + ":microbatch");
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    for (const Json& cause : causes["causes"]) {
      EXPECT_NE(cause["cause"], "worker") << cause.dump();
    }
  }
}

// A trace of a slow worker as the straggler of another simulation.
TEST_F(Recover, Trace) {
  simulate(kStages, "gpu:9:1.63", "measured.csv");
  expect("trace:" + (folder_ / "measured.csv").string(), 9, 1.63);
}

// Weights' gradients vary as their own rows did, or as whole backward passes.
TEST_F(Recover, TraceOfASplitSchedule) {
  const std::string job =
      "--model llama3-8b --gpus 16 --pp 4 --mbs 1 --gbs 64 --seq 2048 --schedule ";
  for (const std::string measured : {"zb-h1", "1f1b"}) {
    simulate(job + measured, "gpu:5:1.4", "measured.csv");
    const std::string trace = "trace:" + (folder_ / "measured.csv").string();
    const double replayed = simulate(job + "zb-h1", trace);
    EXPECT_NEAR(replayed / simulate(job + "zb-h1", "gpu:5:1.4"), 1, 0.01);
    expect(job + "zb-h1", trace, 5, 1.4);
  }
}

// Of a trace with tensor-parallel workers it is the slow one whose passes vary, not its peers'.
TEST_F(Recover, TraceOfTensorParallelPeers) {
  const std::string job =
      "--model llama3-8b --gpus 16 --pp 2 --tp 4 --sp --mbs 1 --global-batch 16 --seq 2048";
  simulate(job, "gpu:13:1.3", "measured.csv");
  expect(job, "trace:" + (folder_ / "measured.csv").string(), 13, 1.3);
}

TEST_F(Recover, GarbageCollection) { expect("gc:6:30ms:60ms", 6, 0); }

// Of all GPUs, each at times of its own: nobody's fault, and planned-gc tells what a simulation in
// which all pause at the same time gives. Two of three pauses are in backward passes, others in the
// optimizer and in clipping, and many are half over when the GPU has something to do.
TEST_F(Recover, GarbageCollectionOfAllGpus) {
  for (const auto& [job, pauses] :
       {std::pair("--pp 2 --tp 1", "300ms:6s"), std::pair("--pp 1 --tp 1", "150ms:6s"),
        std::pair("--pp 2 --tp 2", "500ms:10s")}) {
    SCOPED_TRACE(pauses);
    const std::string words = fmt::format(
        "simulate --model llama3-8b --num-layers 8 --gpus 16 {} --gbs 64 --seq 4096 --seed 3 "
        "--topology Spectrum-X:g=16 --no-straggler-prices --straggler gc:*:{}",
        job, pauses);
    run(fmt::format("{} --steps 40 --trace {} > {}", words, (folder_ / "s.csv").string(),
                    (folder_ / "simulated.txt").string()));
    run(fmt::format("{}:yes --steps 1000 --json > {}", words, (folder_ / "planned.json").string()));
    whatif("--timelines none");
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_EQ(causes["causes"][0]["cause"], "gc");
    for (const Json& cause : causes["causes"]) {
      EXPECT_NE(cause["cause"], "worker") << cause.dump();
    }
    EXPECT_EQ(causes["remedies"][0]["remedy"], "planned-gc");
    const double planned_s = json_of("planned.json")["sample"]["mean_s"];
    EXPECT_NEAR(with_remedy(causes, "planned-gc") / planned_s, 1, 0.03);
    double slow = 0, paused = 0;
    for (const Json& step : causes["steps"]) {
      slow += step["pattern"] != "none" ? 1 : 0;
      paused += step["pattern"] == "gc" ? 1 : 0;
    }
    EXPECT_GE(paused, 0.9 * slow);
  }
}

}  // namespace
}  // namespace lockstep
