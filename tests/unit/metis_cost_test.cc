// Metis's cost model, memory and uniform plans by hand, strict and fixed.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "planner/metis/memory.h"
#include "planner/metis/search.h"
#include "planner/metis/space.h"
#include "planner/metis/uniform.h"
#include "tests/support/metis_problem.h"
#include "tests/support/run.h"

namespace lockstep::metis::metis_cost_test {
namespace {

TEST(MetisCost, FixedByHand) {
  const Plan plan{.node_sequence = {"A100", "T4"},
                  .device_groups = {2, 2},
                  .strategies = {{2, 1}, {2, 1}},
                  .batches = 2,
                  .partition = {0, 3, 4}};
  const Price price = price_plan(testing::metis_problem(Flavour::kFixed), plan);
  EXPECT_DOUBLE_EQ(price.execution, 34 + 50);  // as strict: A100s 2 + 16 + 16, T4s 16
  // 2 samples x 1024 tokens x 4096 x 2 bytes over 10 GB/s = 1e7 bytes a ms
  EXPECT_DOUBLE_EQ(price.pipeline, 16777216.0 / 1e7);
  // 2 (2-1) / 2 x 800 MB over 40 GB/s, 400 MB over 20 GB/s: 20 ms both
  EXPECT_DOUBLE_EQ(price.data_parallel, 20);
  EXPECT_DOUBLE_EQ(price.update, 6);
  EXPECT_DOUBLE_EQ(price.batch, 1);
}

// 4 A100s and 2 T4s, T4s first: Metis takes both servers to have 4 GPUs, as the hostfile's first,
// so the first two A100s to be on the T4s' server.
TEST(MetisCost, StrictTakesEachHostToHaveTheFirstsSlots) {
  const Plan plan{.node_sequence = {"T4", "A100"},
                  .device_groups = {2, 4},
                  .strategies = {{2, 1}, {4, 1}},
                  .batches = 1,
                  .partition = {0, 1, 4}};
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    Problem problem = testing::metis_problem(flavour);
    problem.nodes[0].gpus = 4;
    problem.max_batch = 4;
    problem.profiles.profiles[{"T4", 1, 4}] = problem.profiles.profiles.at({"T4", 1, 2});
    // 2 (4-1) / 4 x 800 MB over the T4s' 20 GB/s, or the A100s' 40.
    EXPECT_DOUBLE_EQ(
        price_plan(problem, plan).data_parallel,
        flavour == Flavour::kStrict ? 1.5 * 800e6 / (20 * 1024.0 * 1024.0) : 1.5 * 800e6 / 40e6);
  }
}

TEST(MetisCost, StrictRefusesHostsThatMetisHasNone) {
  Problem problem = testing::metis_problem(Flavour::kStrict);
  problem.nodes[1].gpus = 3;
  try {
    ranks_of(problem, {"A100", "T4"});
    FAIL() << "5 GPUs, and 2 x 2 that Metis knows of";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("slots: Metis takes each of 2 hosts to have the "
                        "first's 2 GPUs, and has none for the last of 5"),
              std::string::npos)
        << error.what();
  }
  problem.flavour = Flavour::kFixed;
  EXPECT_EQ(ranks_of(problem, {"A100", "T4"}).size(), 5U);
}

TEST(MetisCost, AnOrderNamesEachTypeOnce) {
  const Problem problem = testing::metis_problem(Flavour::kFixed);
  for (const auto& order : {std::vector<std::string>{"A100"}, {"A100", "A100", "T4"}, {}}) {
    EXPECT_THROW(ranks_of(problem, order), Error);
  }
}

// Two servers of A100s, with 40 and 10 GB/s within them and 4 between them.
TEST(MetisCost, StrictBandwidthIsTheTypes) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    Problem problem = testing::metis_problem(flavour);
    problem.nodes[1].type = "A100";
    problem.nodes[1].intra = 10;
    problem.nodes[0].inter = problem.nodes[1].inter = 4;
    const std::vector<Rank> ranks = ranks_of(problem, {"A100"});
    const bool strict = flavour == Flavour::kStrict;
    const double unit = strict ? 1024 * 1024 : 1e6;
    // Metis's groups {0}, {1}, {2}, {3}, each with the first server's; {0, 2} and {1, 3} with the
    // least.
    const auto gbps = [&](int first, Strategy strategy) {
      return 2.0 * (strategy.dp - 1) / strategy.dp /
             (gradient_ms_a_byte(problem, ranks, first, strategy) * unit);
    };
    EXPECT_DOUBLE_EQ(gbps(0, {4, 1}), strict ? 40 : 4);
    EXPECT_DOUBLE_EQ(gbps(0, {2, 2}), strict ? 10 : 4);
    EXPECT_DOUBLE_EQ(gbps(2, {2, 1}), strict ? 40 : 10);
    // 8 / 4 samples x 1024 x 4096, of 2 bytes if fixed
    EXPECT_DOUBLE_EQ(transfer_ms(problem, ranks, 0, 4, {1, 1}, 4, 1),
                     strict ? 8388608 / (10 * unit) : 16777216 / (4 * unit));
    EXPECT_DOUBLE_EQ(transfer_ms(problem, ranks, 2, 4, {1, 1}, 4, 1),
                     strict ? 8388608 / (40 * unit) : 16777216 / (10 * unit));
  }
}

// 10 MB a layer on A100s, 20 on T4s; 5 x that and 0.001, by the first type of the order if strict.
TEST(MetisCost, MemoryIsThatOfTheOrdersFirstTypeIfStrict) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    Problem problem = testing::metis_problem(flavour);
    for (auto& [key, profile] : problem.profiles.profiles) {
      profile.layer_mb.assign(4, std::get<0>(key) == "A100" ? 10 : 20);
    }
    for (const auto& order : {std::vector<std::string>{"A100", "T4"}, {"T4", "A100"}}) {
      const std::vector<Rank> ranks = ranks_of(problem, order);
      for (const int first : {0, 2}) {
        const std::string& type = order[flavour == Flavour::kStrict || first == 0 ? 0 : 1];
        const StageMemory memory(problem, ranks, first, 2, {1, 2}, 8);
        EXPECT_DOUBLE_EQ(memory.demand_mb(1, 4), 0.001 + 5 * 3 * (type == "A100" ? 10 : 20))
            << order[0] << " first, rank " << first;
      }
    }
  }
}

// 8 samples on A100s 4 times as fast as the T4s: 3, 3, 1 and 1, which are 2 + 1, 2 + 1, 1 and 1.
TEST(MetisCost, MemoryOfAMixedStage) {
  const double one = 1000 + 800 + 800 + 1200, two = 1000 + 1600 + 1600 + 1200;
  const Problem strict = testing::metis_problem(Flavour::kStrict);
  const std::vector<Rank> ranks = ranks_of(strict, {"A100", "T4"});
  const StageMemory all(strict, ranks, 0, 4, {4, 1}, 1);
  EXPECT_DOUBLE_EQ(all.demand_mb(0, 4), 0.001 + 5 * (2 * (two + one) + 2 * one));
  EXPECT_DOUBLE_EQ(all.room_mb(), 1024 * (2 * 80 + 2 * 40));
  // Of the A100 and the T4 in the middle Metis thinks as of two groups of two, one a type: 2
  // samples go by 1.6 and 0.4, all to the first.
  EXPECT_DOUBLE_EQ(StageMemory(strict, ranks, 1, 2, {2, 1}, 4).demand_mb(0, 4), 0.001 + 5 * two);
  const Problem fixed = testing::metis_problem(Flavour::kFixed);
  EXPECT_DOUBLE_EQ(StageMemory(fixed, ranks, 0, 4, {4, 1}, 1).demand_mb(0, 4),
                   0.001 + 5 * (two + one));
}

// The clusterfile's first A100 is no host of the hostfile.
TEST(MetisCost, StrictRoomIsThatOfTheClusterfilesFirstOfTheType) {
  Problem problem = testing::metis_problem(Flavour::kStrict);
  problem.nodes = parse_cluster(
      "10.0.0.1 slots=2\n", "hostfile",
      R"({"10.0.0.9": {"instance_type": "A100", "inter_bandwidth": 10, "intra_bandwidth": 40, "memory": 16},
          "10.0.0.1": {"instance_type": "A100", "inter_bandwidth": 10, "intra_bandwidth": 40, "memory": 80}})",
      "cluster");
  const std::vector<Rank> ranks = ranks_of(problem, {"A100"});
  EXPECT_DOUBLE_EQ(StageMemory(problem, ranks, 0, 2, {2, 1}, 4).room_mb(), 2 * 16 * 1024);
  problem.flavour = Flavour::kFixed;
  EXPECT_DOUBLE_EQ(StageMemory(problem, ranks, 0, 2, {2, 1}, 4).room_mb(), 2 * 80 * 1024);
}

// 19 ms of layers on an A100; 4 microbatches of one sample a rank.
TEST(MetisCost, AStepShorterThanItsLayersOrAsLong) {
  const Plan plan{.node_sequence = {"T4", "A100"},
                  .device_groups = {2, 2},
                  .strategies = {{2, 1}, {2, 1}},
                  .batches = 4,
                  .partition = {0, 1, 4}};
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    Problem problem = testing::metis_problem(flavour);
    Profile& last = problem.profiles.profiles.at({"A100", 1, 1});
    last.forward_backward_ms = 18.5;
    EXPECT_DOUBLE_EQ(price_plan(problem, plan).synchronisation,
                     flavour == Flavour::kStrict ? 4 * -0.5 : 0);
    last.forward_backward_ms = 19;
    if (flavour == Flavour::kFixed) {
      EXPECT_DOUBLE_EQ(price_plan(problem, plan).synchronisation, 0);
    } else {
      EXPECT_THROW(price_plan(problem, plan), Error);
    }
  }
}

// Four A100s. Stages of two with 1 and 3 layers take 7 x 11 + 19 - 8 x 4 = 64 ms, which are found
// before a third stage of one GPU and layer, 7 x 8 + 17 = 73, with which it is 75 - 8 x 12 in the
// end.
TEST(MetisCost, CountsAheadWhatStepsAreShorterThanTheirLayers) {
  Problem problem = testing::metis_problem(Flavour::kStrict);
  problem.nodes[1].type = "A100";
  problem.profiles.profiles.at({"A100", 1, 1}).forward_backward_ms = 19 - 12;
  Profile& tp2 = problem.profiles.profiles.at({"A100", 2, 1});
  tp2.layer_ms = {8, 5, 5, 1};
  tp2.forward_backward_ms = 19 - 4;
  const Ranked best = search(problem, {.most = 1}).plans.front();
  EXPECT_EQ(best.plan.partition, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(best.price.execution + best.price.synchronisation, 75 - 96);
}

// 6 samples on both types: the A100s take 2 each and the T4s 1, which no even share allows.
TEST(MetisCost, SeveralTypesShareSamplesThatDpDoesNotDivide) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    Problem problem = testing::metis_problem(flavour);
    problem.global_batch = 6;
    const Plan plan{.node_sequence = {"A100", "T4"},
                    .device_groups = {4},
                    .strategies = {{4, 1}},
                    .batches = 1,
                    .partition = {0, 4}};
    EXPECT_TRUE(soundness(problem, plan).warnings.empty());
    EXPECT_DOUBLE_EQ(price_plan(problem, plan).execution, 76);  // a T4 with one sample, 38 an A100
    const std::vector<Ranked> found = search(problem).plans;
    EXPECT_TRUE(std::ranges::any_of(found, [](const Ranked& ranked) {
      return ranked.plan.batches == 1 && ranked.plan.device_groups == std::vector<int>{4};
    }));
  }
}

// Metis gives a first stage without layers the embedding less a block, 400 - 200 MB, and a last one
// the head less a block.
TEST(MetisCost, ParametersOfAStageWithoutLayers) {
  for (const Flavour flavour : {Flavour::kStrict, Flavour::kFixed}) {
    const Problem problem = testing::metis_problem(flavour);
    const double bytes = flavour == Flavour::kStrict ? 200e6 : 0;
    EXPECT_DOUBLE_EQ(parameter_bytes(problem, {2, 1}, 0, 0), bytes);
    EXPECT_DOUBLE_EQ(parameter_bytes(problem, {1, 2}, 4, 4), bytes / 2);
    EXPECT_DOUBLE_EQ(parameter_bytes(problem, {2, 1}, 2, 2), 0);
    EXPECT_DOUBLE_EQ(parameter_bytes(problem, {1, 2}, 0, 4), 600e6);
    Problem small = problem;  // an embedding of less than a block, in a plan without layers
    small.profiles.model.layer_bytes[0] = 100e6;
    const Plan plan{.node_sequence = {"A100", "T4"},
                    .device_groups = {2},
                    .strategies = {{2, 1}},
                    .batches = 4,
                    .partition = {0, 0}};
    EXPECT_DOUBLE_EQ(price_plan(small, plan).data_parallel,
                     flavour == Flavour::kStrict ? -100e6 / (40 * 1024.0 * 1024.0) : 0);
  }
}

// Two servers of two A100s with 40 and 10 GB/s within, 5 between them.
Problem of_one_type(Flavour flavour) {
  Problem problem = testing::metis_problem(flavour);
  problem.nodes[1].type = "A100";
  problem.nodes[1].intra = 10;
  problem.nodes[0].inter = problem.nodes[1].inter = 5;
  return problem;
}

// 2 blocks in 2 stages: 1 + 8 and 8 + 2 ms, 4 microbatches of 1 sample a rank.
TEST(MetisUniform, ByHand) {
  const UniformPlan plan{.dp = 2, .pp = 2, .tp = 1, .mbs = 1};
  const Problem strict = of_one_type(Flavour::kStrict);
  EXPECT_EQ(plan_of(strict, plan).partition, (std::vector<std::int64_t>{0, 2, 4}));
  const Price price = price_plan(strict, plan);
  const double mib = 1024.0 * 1024.0;
  EXPECT_DOUBLE_EQ(price.execution, 3 * 10 + 19);
  EXPECT_DOUBLE_EQ(price.synchronisation, 4 * 2);
  EXPECT_DOUBLE_EQ(price.update, 2 * 4.0 / 2);
  EXPECT_DOUBLE_EQ(price.data_parallel, 600e6 / (40 * mib));
  EXPECT_DOUBLE_EQ(price.pipeline, 1024.0 * 4096 / (40 * mib));
  EXPECT_DOUBLE_EQ(price.batch, 4 * 0.5);
  EXPECT_TRUE(soundness(strict, plan).warnings.empty());
  // Fixed: 2 bytes an element between the servers; the second server's gradients at 10 GB/s.
  const Price fixed = price_plan(of_one_type(Flavour::kFixed), plan);
  EXPECT_DOUBLE_EQ(fixed.data_parallel, 600e6 / 10e6);
  EXPECT_DOUBLE_EQ(fixed.pipeline, 2 * 1024.0 * 4096 / 5e6);
  EXPECT_DOUBLE_EQ(fixed.update, 2 * 4.0 * 2 / 4);
}

// 8 blocks in 16 stages: one each in the second to the ninth (7.6 of Metis's description).
TEST(MetisUniform, TheRemainderGoesToTheSecondStageOn) {
  Problem problem = of_one_type(Flavour::kStrict);
  problem.layers = 10;
  problem.nodes[0].gpus = 8;
  problem.nodes[1].gpus = 8;
  EXPECT_EQ(plan_of(problem, {.pp = 16}).partition,
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 10}));
  problem.nodes[1].gpus = 4;
  EXPECT_EQ(plan_of(problem, {.dp = 4, .pp = 3}).partition,
            (std::vector<std::int64_t>{0, 3, 6, 10}));
}

TEST(MetisUniform, WarnsAndRefuses) {
  Problem problem = of_one_type(Flavour::kStrict);
  problem.global_batch = 9;
  problem.nodes[0].memory = 1;
  problem.nodes[0].gpus = 3;  // 5 stages of 2 blocks: one each in the second and third
  const Soundness sound = soundness(problem, UniformPlan{.pp = 5, .mbs = 2});
  EXPECT_FALSE(sound.fits);
  EXPECT_EQ(sound.warnings,
            (std::vector<std::string>{"the plan leaves out 1 of 9 samples",
                                      "stage 1 needs 1600.0 MB by its profile, a GPU has 1024.0",
                                      "stage 2 needs 1600.0 MB by its profile, a GPU has 1024.0",
                                      "stage 3 has no layers",
                                      "stage 4 needs 1200.0 MB by its profile, a GPU has 1024.0"}));
  problem.nodes[0].gpus = 2;
  for (const UniformPlan& plan :
       {UniformPlan{.dp = 1, .pp = 2},                        // 2 GPUs of 4
        UniformPlan{.dp = 4, .mbs = 4},                       // 16 samples of 9
        UniformPlan{.dp = 2, .pp = 2, .tp = 1, .mbs = 3}}) {  // no profile
    EXPECT_THROW(price_plan(problem, plan), Error);
  }
  EXPECT_THROW(price_plan(testing::metis_problem(Flavour::kStrict), UniformPlan{.dp = 4}),
               Error);  // two types
  problem.flavour = Flavour::kFixed;
  EXPECT_THROW(price_plan(problem, UniformPlan{.dp = 4, .mbs = 2}), Error);  // 1 of 9 left out
}

TEST(MetisProfiles, OfSeveralModelsAreWarnedAbout) {
  const testing::ScratchFolder folder;
  const auto write = [&](const std::string& name, const std::string& model) {
    write_file(folder / name, fmt::format(R"({{"model": {{"model_name": "{}",
        "parameters": {{"parameters_per_layer_bytes": [1, 1, 1]}}}},
        "execution_time": {{"layer_compute_total_ms": [1, 1, 1], "forward_backward_time_ms": 4,
        "optimizer_time_ms": 1, "batch_generator_time_ms": 0}},
        "execution_memory": {{"layer_memory_total_mb": [1, 1, 1]}}}})",
                                          model));
  };
  write("DeviceType.A100_tp1_bs1.json", "gpt");
  write("DeviceType.A100_tp2_bs1.json", "gpt");
  EXPECT_TRUE(read_profiles(folder.path(), {"A100"}, 3).warnings.empty());
  write("DeviceType.A100_tp2_bs1.json", "llama");
  const std::vector<std::string> warnings = read_profiles(folder.path(), {"A100"}, 3).warnings;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("tp2_bs1.json: of llama, but"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace lockstep::metis::metis_cost_test
