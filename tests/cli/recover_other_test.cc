// What is no one worker's fault: parts of the fabric, stages, uneven work, a single step; and
// traces without any (recover.h).
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/cli/recover.h"

namespace lockstep {
namespace {

// Gradients of weights that are left behind the last pass, and what is reduced behind them, are all
// of the step that no pass explains: replayed without launch gaps it takes what it took.
TEST_F(Recover, ReplayedStepsOfSplitSchedulesTakeTheirTime) {
  const std::string small = "--model llama3-8b --num-layers 8 --mbs 1 --seq 2048 --pp 2 ";
  for (const auto& [more, straggler] :
       {std::pair("--gpus 16 --gbs 32 --schedule zb-h1", "gpu:13:1.81"),
        std::pair("--gpus 6 --gbs 12 --schedule dualpipe", "gpu:4:1.78"),
        std::pair("--gpus 16 --tp 2 --gbs 64 --schedule 1f1b-overlap", "gpu:10:1.6"),
        std::pair("--gpus 16 --tp 2 --vpp 2 --gbs 64 --schedule 1f1b-overlap", "gpu:3:1.3"),
        std::pair("--gpus 16 --tp 2 --sp --gbs 64 --schedule zb-h1", "gpu:10:1.6")}) {
    SCOPED_TRACE(more);
    simulate(small + more, straggler);
    whatif();
    EXPECT_NEAR(json_of("out/causes-simulated.json")["step_time_s"].get<double>() /
                    json_of("simulated.json")["total_s"].get<double>(),
                1, 0.001);
  }
}

// A table of layers has no clipping; and no computation where it has no times.
TEST_F(Recover, ATableOfLayersIsRead) {
  const std::string table = (folder_ / "table.txt").string();
  run("generate --generator simai-training --model gpt-13b --world_size 64 --tp 8 --pp 4 --sp "
      "--global_batch 64 --micro_batch 1 -o " +
      table + " > " + (folder_ / "generated.txt").string());
  run(
      fmt::format("simulate --workload {} --semantics megatron --topology Spectrum-X:g=64 --trace "
                  "{} --json > {}",
                  table, (folder_ / "s.csv").string(), (folder_ / "simulated.json").string()));
  whatif();
  EXPECT_NEAR(json_of("out/causes-simulated.json")["step_time_s"].get<double>() /
                  json_of("simulated.json")["total_s"].get<double>(),
              1, 0.01);
}

// What simulations write gives no cause for warnings.
TEST_F(Recover, CleanTracesAreReadWithoutWarnings) {
  for (const std::string schedule : {"1f1b", "1f1b-overlap", "gpipe", "zb-h1", "dualpipe"}) {
    simulate(fmt::format("--model llama3-8b --gpus 8 --pp 4 --mbs 1 --gbs 64 --seq 2048 "
                         "--schedule {}",
                         schedule),
             "gpu:0:1");
    whatif();
    const FileText said((folder_ / "whatif.txt").string());
    EXPECT_EQ(said.view().find("warning"), std::string_view::npos) << said.view();
  }
}

// What reductions in every microbatch meet is not known without the slow GPU: transfers of
// tensor-parallel peers on their links, or computations that they slow down.
TEST_F(Recover, WhatReductionsMeetIsWarnedOf) {
  for (const auto& [more, off] :
       {std::pair<std::string, std::string>{"--tp 2 --zero 2", "up to 3.4 % off"},
        {"--tp 2 --zero 1", ""},
        {"--tp 1 --zero 2", ""},
        {"--tp 1 --zero 2 --interference 0.2", "up to 1.5 % off"},
        {"--tp 1 --zero 1 --interference 0.2", ""}}) {
    simulate("--model llama3-8b --num-layers 8 --gpus 8 --mbs 1 --gbs 32 --seq 2048 " + more,
             "gpu:1:1.5");
    whatif();
    const FileText said((folder_ / "whatif.txt").string());
    EXPECT_EQ(said.view().find("% off") != std::string_view::npos, !off.empty()) << said.view();
    EXPECT_NE(said.view().find(off), std::string_view::npos) << said.view();
  }
}

// Of one replica DualPipe has gradients to add up all the same: those of the stages that hold the
// same layers.
TEST_F(Recover, DualPipeOfOneReplicaIsRead) {
  simulate("--model llama3-8b --gpus 4 --pp 4 --mbs 1 --gbs 16 --seq 2048 --schedule dualpipe",
           "gpu:2:1.5");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  EXPECT_EQ(causes["slowest_workers"][0]["rank"], 2);
  EXPECT_NEAR(
      causes["step_time_s"].get<double>() / json_of("simulated.json")["total_s"].get<double>(), 1,
      0.001);
}

// Servers have eight GPUs: the second one has stages 2 and 3, all of them slow.
TEST_F(Recover, Node) {
  expect_mended(
      "node:1:1.3",
      "--set 'compute[rank=8-15] *= 0.76923077' --set 'optimizer[rank=8-15] *= 0.76923077'");
  expect_slow_stages("node:1:1.3", "1.3 times on stage 2, ");
}

TEST_F(Recover, Stage) {
  expect_mended("stage:2:1.5", "--set 'compute[stage=2] *= 0.66666667'");
  expect_slow_stages("stage:2:1.5", "1.5 times on stage 2");
}

// A slow cable, NIC, switch or rail: the part that is left of the bandwidth is that of the messages
// that cross it, but for what does not depend on bandwidth (1.6 % of the 1.4 ms of 64 MiB here).
TEST_F(Recover, Link) { expect_slow_messages("link:3-21:0.05", 3, 20); }

TEST_F(Recover, Nic) { expect_slow_messages("nic:5:0.05", 5, 20); }

TEST_F(Recover, Switch) { expect_slow_messages("switch:20:0.05", 2, 20); }

TEST_F(Recover, Rail) { expect_slow_messages("rail:6:0.05", 6, 20); }

// One of five packets lost, and 64 sent again for each: (1 - p) / (1 - p + 64 p) = 1 / 17 is left.
TEST_F(Recover, Loss) { expect_slow_messages("loss:3-21:0.2:64", 3, 17); }

// 380 of 400 Gb/s are taken on the way from GPU 3 to GPU 11, nothing on the way back.
TEST_F(Recover, Background) { expect_slow_messages("background:3-11:380Gbps", 3, 20); }

// A cable that is away for half a second, with no other way: the messages of that time wait for its
// end.
TEST_F(Recover, Down) { expect_slow_messages("down:3-21:never@500ms-1000ms", 3, 0); }

// Loads of a group have a mean of 1, so that passes as long as their mean are those of even loads.
// Transfers among the experts, which carry uneven loads too, are somewhat longer by their median.
TEST_F(Recover, Experts) {
  expect_mended("experts:0.5:0.3", "--set 'compute = ideal' --set 'tp-comm = ideal'",
                "--model mixtral-8x7b --gpus 8 --ep 8 --mbs 1 --global-batch 64 --seq 1024", 1.2);
}

// A trace does not say how long sequences are, so not how long passes were if they were even, and S
// cannot be told. What it shows is that passes vary, forward and backward together.
TEST_F(Recover, SequenceLengths) {
  simulate(kStages, "seqlen:0.5");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  EXPECT_EQ(causes["causes"][0]["cause"], "sequence-length");
  EXPECT_GT(causes["sequence_length"]["correlation"].get<double>(), 0.99);
  simulate("--model llama3-8b --gpus 16 --mbs 1 --gbs 64 --seq 2048", "seqlen:0.5");
  whatif();
  const Json without_stages = json_of("out/causes-simulated.json")["causes"];
  ASSERT_EQ(without_stages.size(), 1U) << without_stages.dump();
  EXPECT_EQ(without_stages[0]["cause"], "sequence-length");
  simulate(kStages, "seqlen:0");
  whatif();
  EXPECT_LT(json_of("out/causes-simulated.json")["sequence_length"]["correlation"].get<double>(),
            0.9);
}

// What uneven sequences cost beside even ones is not in a trace, but what they cost beside passes
// as long as theirs are on average is: that of a step all of whose GPUs are slow by that much.
TEST_F(Recover, SequenceLengthsBesideTheirMean) {
  const std::string job = "--model llama3-8b --gpus 16 --zero 1 --mbs 1 --gbs 64 --seq 2048";
  const auto mean_of_passes = [&](const std::string& trace) {
    std::ifstream rows(folder_ / trace);
    double sum = 0;
    int count = 0;
    for (std::string line; std::getline(rows, line);) {
      if (line.find("-compute,") != std::string::npos) {
        std::vector<std::string> fields;
        std::istringstream text(line);
        for (std::string field; std::getline(text, field, ',');) {
          fields.push_back(field);
        }
        sum += std::stod(fields[6]);
        ++count;
      }
    }
    return sum / count;
  };
  simulate(job, "gpu:0:1", "even.csv");
  simulate(job, "seqlen:0.5");
  const double uneven_s = json_of("simulated.json")["total_s"];
  const double edited_s = edited("--set 'compute = ideal'");
  simulate(job, fmt::format("gpu:*:{}", mean_of_passes("s.csv") / mean_of_passes("even.csv")),
           "mean.csv");
  const double mean_s = json_of("simulated.json")["total_s"];
  EXPECT_GT(uneven_s / mean_s, 1.1);
  EXPECT_NEAR(uneven_s / edited_s / (uneven_s / mean_s), 1, 0.01);
}

// Passes that run side by side are as long as both, those alone are not, and DualPipe's sums of two
// copies are no sums of replicas: each kind has its own ideal, so that nobody straggles.
TEST_F(Recover, HealthyPassesSideBySideDoNotStraggle) {
  const std::string job =
      "--model mixtral-8x7b --num-layers 8 --seq 2048 --mbs 1 --gpus 16 --pp 2 --ep 4 --gbs 128 ";
  for (const char* schedule : {"1f1b", "1f1b-overlap", "dualpipe"}) {
    SCOPED_TRACE(schedule);
    simulate(job + "--schedule " + schedule, "gpu:0:1");
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_GE(causes["slowdown"], 1.0);
    EXPECT_LE(causes["slowdown"], 1.03);  // the last stage's head
    simulate(job + "--schedule " + schedule, "gpu:10:1.91");
    whatif();
    const Json slow = json_of("out/causes-simulated.json");
    // The first stage reduces most of its gradients beside its passes, the last one none: an ideal
    // step has the median of both.
    EXPECT_NEAR(slow["ideal_step_time_s"].get<double>(), causes["step_time_s"].get<double>(),
                0.05 * causes["step_time_s"].get<double>());
  }
}

/// Steps of a trace that what-if once replayed in another time than they took.
class RecoverReplay : public Recover {
 protected:
  void expect_replayed(const std::string& job, double within) {
    SCOPED_TRACE(job);
    run(fmt::format("simulate {} --topology Spectrum-X:g={} --trace {} --json > {} 2> {}", job,
                    cluster_gpus_, (folder_ / "s.csv").string(),
                    (folder_ / "simulated.json").string(), (folder_ / "said.txt").string()));
    whatif();
    const double simulated_s = json_of("simulated.json")["total_s"];
    EXPECT_NEAR(json_of("out/causes-simulated.json")["step_time_s"].get<double>(), simulated_s,
                within * simulated_s);
  }
};

// Parameters that are gathered behind the optimizer come before the step, the parts of chunk 0
// last.
TEST_F(RecoverReplay, ParametersGatheredBehindTheOptimizer) {
  const std::string job =
      "--model llama2-7b --num-layers 8 --seq 2048 --mbs 1 --gpus 8 --gbs 32 --zero 1 "
      "--no_overlap_parameters";
  expect_replayed(job, 1e-5);
  expect_replayed(job + " --pp 2 --vpp 2", 1e-5);
}

// Passes that wait for parameters: of the first workers alone they are as long as with the wait.
TEST_F(RecoverReplay, ParametersGatheredInPassesOfTheFirstWorkers) {
  expect_replayed(
      "--model deepseek-v2-lite --num-layers 16 --seq 2048 --mbs 1 --gpus 16 --tp 4 --pp 2 "
      "--gbs 16 --vpp 4 --ep 1 --sp --zero 3 --trace-workers first",
      0.01);
}

// No sum of embedding gradients is needed: the rows that stand for it at each stage's own end tell
// no transfer, and no negative one.
TEST_F(RecoverReplay, EmptyRowsAreNoTransfers) {
  expect_replayed(
      "--model llama2-7b --num-layers 4 --seq 1024 --mbs 1 --gpus 16 --pp 2 --gbs 8 --cp 2 "
      "--cp_comm_type ring --zero 2 --vocab_size 512",
      1e-5);
  const Json causes = json_of("out/causes-simulated.json");
  EXPECT_LE(causes["slowdown"], 1.05);
  EXPECT_TRUE(causes["causes"].empty()) << causes["causes"].dump();
}

// Equal sequences on one slow GPU are not dealt out, and one GPU that varies from microbatch to
// microbatch has no long sequences: its dp_rank's other stages and peers have the same ones.
TEST_F(Recover, LongSequencesAreThoseOfAWholeReplica) {
  simulate("--model llama3-8b --num-layers 16 --seq 2048 --mbs 1 --gpus 8 --gbs 64", "gpu:4:1.46");
  whatif();
  EXPECT_EQ(with_remedy(json_of("out/causes-simulated.json"), "redistribute-sequences"), 0);
  simulate("--model llama3-8b --num-layers 8 --seq 4096 --mbs 1 --gpus 16 --pp 4 --gbs 64 --zero 1",
           "jitter:5:lognormal:0.6:microbatch");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  for (const Json& cause : causes["causes"]) {
    EXPECT_NE(cause["cause"], "sequence-length") << cause.dump();
  }
  EXPECT_LT(causes["sequence_length"]["shared"].get<double>(), 0.5);
}

// Without sharding each replica clips for itself, and in DualPipe the sums before, of the stages
// with the same layers, end at different times: those of the slow one's peers last.
TEST_F(Recover, ReplicasOfDualPipeClipApart) {
  simulate(
      "--model llama3-8b --num-layers 8 --seq 2048 --mbs 1 --gpus 12 --tp 2 --pp 2 --gbs 24 "
      "--schedule dualpipe",
      "gpu:6:1.91");
  whatif();
  const double simulated_s = json_of("simulated.json")["total_s"];
  EXPECT_NEAR(json_of("out/causes-simulated.json")["step_time_s"].get<double>(), simulated_s,
              1e-6 * simulated_s);
}

// A chunk's parameters are gathered behind all of those before, of which the first pass waits for a
// part. (The step was replayed 0.5 % short.)
TEST_F(Recover, ParametersOfChunksFollowEachOther) {
  cluster_gpus_ = 64;
  simulate(
      "--model llama2-7b --num-layers 4 --seq 512 --mbs 1 --gpus 64 --tp 2 --sp --pp 2 --vpp 2 "
      "--gbs 64 --zero 1",
      "gpu:9:1.44");
  whatif();
  const double simulated_s = json_of("simulated.json")["total_s"];
  EXPECT_NEAR(json_of("out/causes-simulated.json")["step_time_s"].get<double>(), simulated_s,
              1e-5 * simulated_s);
}

// Of passes that take turns each says what it computes for itself, so that forward and backward of
// a microbatch vary together, and no worker is named for the others' sequences. (r was 0.0, and six
// workers were.) Long ones are dealt out anew.
TEST_F(Recover, UnevenSequencesOfPassesSideBySide) {
  simulate(
      "--model mixtral-8x7b --num-layers 8 --seq 2048 --mbs 1 --gpus 16 --pp 2 --gbs 64 --ep 4 "
      "--schedule 1f1b-overlap",
      "seqlen:0.9:4:lognormal:2");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  EXPECT_GT(causes["sequence_length"]["correlation"].get<double>(), 0.99);
  bool named = false;
  for (const Json& cause : causes["causes"]) {
    named = named || cause["cause"] == "sequence-length";
    EXPECT_NE(cause["cause"], "worker") << cause.dump();
  }
  EXPECT_TRUE(named);
  const double dealt_s = with_remedy(causes, "redistribute-sequences");
  EXPECT_GT(dealt_s, 0);
  EXPECT_LT(dealt_s, 0.9 * causes["step_time_s"].get<double>());
}

// Where no worker is slow replacing one changes nothing, also of the first workers alone, whose
// reductions begin behind all weights' gradients. (A step took 4 % more.)
TEST_F(Recover, ReplacingAHealthyWorkerChangesNothing) {
  cluster_gpus_ = 32;
  const std::string job =
      "--model llama3-8b --num-layers 8 --seq 2048 --mbs 1 --gpus 32 --tp 4 --pp 2 --gbs 32 "
      "--schedule ";
  for (const std::string schedule : {"dualpipe", "zb-h1", "1f1b"}) {
    SCOPED_TRACE(schedule);
    simulate(job + schedule + " --trace-workers first", "gpu:0:1");
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_NEAR(with_remedy(causes, "replace-worker") / causes["step_time_s"].get<double>(), 1,
                1e-4);
  }
}

// With HSDP sums among replicas hold up the gathers of the next pass, perhaps of another chunk, and
// those of the chunk's last pass where it has some behind them; the first pass gathers when its
// message is there. (Steps were replayed 34 % too long, and 1.7 % too short.) Gathers that are not
// done before a message comes are no slow communication.
TEST_F(Recover, SumsAmongReplicasHoldUpTheNextPass) {
  for (const std::string job : {
           "llama2-7b --num-layers 4 --seq 4096 --pp 4 --gbs 64 --schedule dualpipe --recompute "
           "full",
           "llama2-7b --num-layers 4 --seq 1024 --pp 4 --gbs 64 --schedule dualpipe",
           "gpt3-6.7b --num-layers 4 --seq 1024 --pp 4 --gbs 32 --schedule 1f1b",
           "llama2-7b --num-layers 16 --seq 1024 --pp 2 --gbs 32 --schedule zb-h1",
       }) {
    SCOPED_TRACE(job);
    simulate("--mbs 1 --gpus 16 --zero 3 --hsdp_replicas 2 --model " + job, "gpu:14:1.84");
    whatif();
    const double simulated_s = json_of("simulated.json")["total_s"];
    const Json causes = json_of("out/causes-simulated.json");
    EXPECT_NEAR(causes["step_time_s"].get<double>(), simulated_s, 1e-5 * simulated_s);
    for (const Json& cause : causes["causes"]) {
      EXPECT_NE(cause["cause"], "communication") << cause.dump();
    }
  }
}

// Two cables of different data-parallel ranks are away for a while: no worker and no stage explains
// what is lost, transfers do.
TEST_F(Recover, CommunicationIsNamed) {
  EXPECT_GT(
      simulate(kServers, "down:3-21:never@200ms-900ms --straggler down:13-23:never@300ms-1000ms"),
      1.1);
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  ASSERT_EQ(causes["causes"].size(), 1U);
  EXPECT_EQ(causes["causes"][0]["cause"], "communication");
  EXPECT_EQ(causes["causes"][0]["confidence"], 1);
  EXPECT_NE(causes["causes"][0]["evidence"].get<std::string>().find("pp-comm"), std::string::npos);
  EXPECT_EQ(causes["steps"][0]["pattern"], "communication");
}

// All GPUs are slow in one of eight steps: that step is a one-off, no worker's or stage's fault,
// and the job does not straggle.
TEST_F(Recover, AOneOffIsToldFromWhatLasts) {
  const std::string job = "--model llama3-8b --gpus 8 --mbs 1 --global-batch 32 --seq 1024";
  simulate(job, "gpu:*:1.5", "slow.csv");
  simulate(job, "gpu:0:1", "clean.csv");
  std::ofstream all(folder_ / "s.csv");
  for (int step = 1; step <= 8; ++step) {
    std::ifstream rows(folder_ / (step == 5 ? "slow.csv" : "clean.csv"));
    std::string line;
    std::getline(rows, line);
    if (step == 1) {
      all << line << "\n";
    }
    const std::regex step_of("^([^,]*,[^,]*,[^,]*),[^,]*,");
    while (std::getline(rows, line)) {
      all << std::regex_replace(line, step_of, fmt::format("$1,{},", step)) << "\n";
    }
  }
  all.close();
  std::filesystem::copy_file(folder_ / "clean.yaml", folder_ / "s.yaml");
  whatif();
  const Json causes = json_of("out/causes-simulated.json");
  ASSERT_EQ(causes["steps"].size(), 8U);
  for (const Json& step : causes["steps"]) {
    EXPECT_EQ(step["pattern"], step["step"] == 5 ? "one-off" : "none") << step.dump();
  }
  EXPECT_TRUE(causes["causes"].empty()) << causes["causes"].dump();
}

}  // namespace
}  // namespace lockstep
