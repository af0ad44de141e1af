#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/sweep/condition.h"
#include "app/sweep/cost.h"
#include "app/sweep/grid.h"
#include "app/sweep/grid_flags.h"
#include "base/error.h"

namespace lockstep::sweep_grid_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> values_of(const std::string& yaml) {
  const Grid grid = parse_grid("command: simulate\naxes: [{x: " + yaml + "}]\n", "g.yaml");
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    texts.push_back(to_text(grid.point(i).inputs.front().second));
  }
  return texts;
}

std::string problem_with(const std::string& yaml) {
  try {
    parse_grid(yaml, "g.yaml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Grid, ListsRangesAndSeeds) {
  EXPECT_THAT(values_of("[a, 2, 400Gbps]"), ElementsAre("a", "2", "400Gbps"));
  EXPECT_THAT(values_of("{from: 100Gbps, to: 400Gbps, steps: 4}"),
              ElementsAre("100Gbps", "200Gbps", "300Gbps", "400Gbps"));
  EXPECT_THAT(values_of("{from: 0, to: 0.3, step: 0.1}"), ElementsAre("0", "0.1", "0.2", "0.3"));
  EXPECT_THAT(values_of("{from: 4, to: 1, step: -1.5}"), ElementsAre("4", "2.5", "1"));
  EXPECT_THAT(values_of("{from: 1, to: 1000, steps: 4, scale: log}"),
              ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(values_of("{from: 1e3, to: 2e3, steps: 2}"), ElementsAre("1000", "2000"));
  EXPECT_THAT(values_of("{seeds: 3, first: 7}"), ElementsAre("7", "8", "9"));
}

TEST(Grid, LongNumbersKeepTheirDigits) {
  EXPECT_THAT(values_of("{from: 1000000000001, to: 1000000000003, step: 1}"),
              ElementsAre("1000000000001", "1000000000002", "1000000000003"));
  EXPECT_THAT(values_of("{from: 1099511627776, to: 4398046511104, steps: 4}"),
              ElementsAre("1099511627776", "2199023255552", "3298534883328", "4398046511104"));
  EXPECT_THAT(values_of("{from: 9007199254740989, to: 9007199254740991, step: 2}"),
              ElementsAre("9007199254740989", "9007199254740991"));
  EXPECT_THAT(
      problem_with(
          "command: simulate\naxes:\n  - seed: {from: 1, to: 9007199254740993, steps: 3}\n"),
      ::testing::HasSubstr("'9007199254740993' has more digits than a range keeps"));
  EXPECT_THAT(values_of("{from: 1000000000000.5, to: 1000000000002, step: 1}"),
              ElementsAre("1000000000000.5", "1000000000001.5"));
  EXPECT_THAT(values_of("{from: 1e12, to: 1e14, steps: 3, scale: log}"),
              ElementsAre("1000000000000", "10000000000000", "100000000000000"));
  EXPECT_THAT(values_of("{from: -0.3, to: 0.1, step: 0.1}"),
              ElementsAre("-0.3", "-0.2", "-0.1", "0", "0.1"));
  EXPECT_THAT(values_of("{from: 1, to: 10, steps: 3, scale: log}"),
              ElementsAre("1", "3.16227766017", "10"));
}

TEST(Grid, TheLastAxisIsTheFastestAndZippedFlagsGoTogether) {
  const Grid grid = parse_grid(R"(
command: plan
axes:
  - zip: {tp: [1, 2], pp: [4, 2]}
  - cost: [strict, fixed]
flags: {json-lines: false, nodes: 3}
)",
                               "g.yaml");
  ASSERT_EQ(grid.size(), 4);
  EXPECT_THAT(
      command_line(grid, grid.point(2), "", false),
      ElementsAre("plan", "--tp", "2", "--pp", "2", "--cost", "strict", "--nodes", "3", "--json"));
  EXPECT_THAT(grid.point(3).places, ElementsAre(1, 1));
}

TEST(Grid, ValuesBecomeWords) {
  const Grid grid = parse_grid(R"(
command: compare score
flags: {nvls: true, spray: false, pxn: null, set: [a b, c], g: 8, arguments: [x.txt, y.txt], n: "true"}
)",
                               "g.yaml");
  ASSERT_EQ(grid.size(), 1);  // no axes: one point
  EXPECT_THAT(command_line(grid, grid.point(0), "", false),
              ElementsAre("compare", "score", "--nvls", "--set", "a b", "--set", "c", "-g", "8",
                          "-n", "true", "--json", "x.txt", "y.txt"));
}

TEST(Grid, WhatIfIsGivenAFolder) {
  const Grid grid = parse_grid("command: whatif\n", "g.yaml");
  EXPECT_THAT(command_line(grid, grid.point(0), "out/points/0", false),
              ElementsAre("whatif", "--json", "--output", "out/points/0"));
}

// 3 x 3 cells, of which tp * pp <= 4 refuses (2,4), (4,2), (4,4).
TEST(Grid, ConditionsLeaveCellsOut) {
  const Grid grid = parse_grid(R"(
command: simulate
axes: [{tp: [1, 2, 4]}, {pp: [1, 2, 4]}]
where: ["tp * pp <= 4"]
)",
                               "g.yaml");
  ASSERT_EQ(grid.size(), 6);
  EXPECT_THAT(grid.cells, ElementsAre(0, 1, 2, 3, 4, 6));
}

TEST(Condition, KnowsTextsUnitsAndFlags) {
  const std::vector<std::pair<std::string, FlagValue>> inputs{
      {"engine", {"packet"}}, {"global-batch", {"64"}},
      {"nic", {"400Gbps"}},   {"send-latency", {"2us"}},
      {"size", {"1MiB"}},     {"pxn", {""}},
      {"spray", {}}};
  const auto holds = [&](const char* text) { return Condition(text, "g.yaml", 3).holds(inputs); };
  EXPECT_TRUE(holds("engine == 'packet'"));
  EXPECT_FALSE(holds("engine == \"flow\""));
  EXPECT_TRUE(holds("engine != 'flow'"));
  EXPECT_TRUE(holds("global_batch % 8 == 0"));
  EXPECT_TRUE(holds("nic == 400e9"));
  EXPECT_TRUE(holds("nic == '400Gbps'"));
  EXPECT_TRUE(holds("send_latency < 1e-3"));
  EXPECT_TRUE(holds("size == 1048576"));
  EXPECT_TRUE(holds("pxn"));
  EXPECT_FALSE(holds("spray"));
  EXPECT_TRUE(holds("if(engine == 'packet', global_batch <= 64, 0)"));
  EXPECT_TRUE(holds("nic >= 200Gbps"));
  EXPECT_TRUE(holds("nic == 50GBps"));  // bytes
  EXPECT_FALSE(holds("send_latency<2us"));
  EXPECT_TRUE(holds("size + 1MiB == 2*1MiB"));
  EXPECT_TRUE(holds("1e-3 > send_latency"));
}

// Those of goodput's flags are longer than the clock of simulations.
TEST(Condition, KnowsDurations) {
  const std::vector<std::pair<std::string, FlagValue>> inputs{{"server-mtbf", {"200d"}},
                                                              {"for", {"4w"}}};
  const auto holds = [&](const char* text) { return Condition(text, "g.yaml", 3).holds(inputs); };
  EXPECT_TRUE(holds("server_mtbf >= 12h"));
  EXPECT_FALSE(holds("server_mtbf > 1y"));
  EXPECT_TRUE(holds("for > 2w"));
  EXPECT_TRUE(holds("for == '28d'"));
  EXPECT_TRUE(holds("server_mtbf == 200 * 86400"));
}

TEST(Condition, TextsAreEqualOrNot) {
  const std::vector<std::pair<std::string, FlagValue>> inputs{{"engine", {"packet"}},
                                                              {"gpus", {"8"}}};
  const auto problem = [&](const char* text) -> std::string {
    try {
      Condition(text, "g.yaml", 3).holds(inputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const char* text : {"engine < 'quick'", "gpus < 'many'", "'9 GPUs' > gpus", "engine",
                           "if(engine > 4, 1, 0)", "engine + 1 > 0"}) {
    EXPECT_THAT(problem(text), HasSubstr("g.yaml:3: where: a text is compared")) << text;
  }
  EXPECT_THAT(problem("gpus < 4 parsecs"), HasSubstr("where"));
  EXPECT_EQ(problem("engine == 'flow'"), "");
}

TEST(Grid, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(problem_with("command: simulat\n"), HasSubstr("g.yaml:1"));
  EXPECT_THAT(problem_with("command: simulate\naxis: []\n"), HasSubstr("unknown key 'axis'"));
  EXPECT_THAT(problem_with("command: simulate\naxes:\n  - tp: []\n"), HasSubstr("g.yaml:3: tp"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{tp: [1]}, {tp: [2]}]\n"),
              HasSubstr("tp: stands twice"));
  EXPECT_THAT(problem_with("command: simulate\nflags: {json: true}\n"), HasSubstr("--json is set"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{zip: {tp: [1, 2], pp: [1]}}]\n"),
              HasSubstr("has 1 values, tp has 2"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: {from: 1Gbps, to: 2GBps, steps: 2}}]\n"),
              HasSubstr("one unit"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: {from: 1, to: 2, step: -1}}]\n"),
              HasSubstr("does not lead"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: [1]}]\nwhere: \"x > 1\"\n"),
              HasSubstr("no point meets"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: [1]}]\nwhere: \"y > 1\"\n"),
              HasSubstr("unknown variable 'y'"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: {seeds: 5000}}, {y: {seeds: 5000}}]\n"),
              HasSubstr("more than 10000000 points"));
  // At the axis that is too many, before what follows is looked at or made.
  EXPECT_THAT(problem_with("command: simulate\naxes:\n  - x: {seeds: 5000}\n"
                           "  - y: {from: 1, to: 5000, steps: 5000}\n  - z: []\n"),
              HasSubstr("g.yaml:4: axes: more than 10000000 points"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{zip: {a: {seeds: 1000000}, "
                           "b: {seeds: 1000000}, c: {seeds: 1}}}]\n"),
              HasSubstr("more than 2000000 values"));
  EXPECT_THAT(problem_with("a: [b"), HasSubstr("g.yaml:"));
  EXPECT_THAT(problem_with("command: simulate\naxes:\n  - --seed: [1]\n"),
              HasSubstr("g.yaml:3: flags: '--seed' has dashes"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{help: [true]}]\n"),
              HasSubstr("gives no result"));
  EXPECT_THAT(problem_with("command: simulate\naxes: [{x: [\"\"]}]\n"),
              HasSubstr("is an empty text"));
  EXPECT_THAT(problem_with("command: simulate\nlimits: {time: 0s}\n"), HasSubstr("more than 0"));
  EXPECT_THAT(problem_with("command: simulate\nlimits: {memory: 0}\n"), HasSubstr("limits"));
  EXPECT_THAT(
      problem_with("command: simulate\naxes: [{x: {from: 1, to: 8, step: 2, scale: log}}]\n"),
      HasSubstr("has no step"));
  EXPECT_THAT(problem_with("command: simulate\nflags: {trace: a/b.json}\n"),
              HasSubstr("in the point's own folder"));
}

TEST(Grid, PointsWriteIntoFoldersOfTheirOwn) {
  const Grid grid = parse_grid(R"(
command: simulate
axes: [{trace: [a.json, b.json]}]
flags: {figure: [timeline=t.svg, layers.svg], workload: w.txt}
)",
                               "g.yaml");
  EXPECT_TRUE(writes_files(grid, false));
  EXPECT_EQ(output_flag_of(grid), "figure");
  EXPECT_THAT(command_line(grid, grid.point(1), "o/points/1", true),
              ElementsAre("simulate", "--trace", "o/points/1/b.json", "--figure",
                          "timeline=o/points/1/t.svg", "--figure", "o/points/1/layers.svg",
                          "--workload", "w.txt", "--json"));
  EXPECT_FALSE(names_output(parse_grid("command: whatif\nflags: {trace: t.csv}\n", "g"), "trace"));
}

std::string problem_with_flags(const std::string& yaml) {
  try {
    check_flags(parse_grid(yaml, "g.yaml"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Grid, FlagsAreThoseOfTheCommand) {
  EXPECT_EQ(problem_with_flags("command: simulate\nflags: {model: llama3-8b, tp: 2, sp: true, "
                               "global-batch: 8, send-latency: 1us, quiet: true}\n"),
            "");
  EXPECT_EQ(problem_with_flags("command: compare score\nflags: {arguments: [a], preset: x}\n"), "");
  EXPECT_THAT(problem_with_flags("command: simulate\naxes:\n  - {enginee: [flow]}\n"),
              AllOf(HasSubstr("g.yaml:3: enginee: simulate has no flag"), HasSubstr("'engine'")));
  EXPECT_THAT(
      problem_with_flags("command: simulate\nflags: {tp: 2, tensor-model-parallel-size: 2}"),
      HasSubstr("stands twice in the grid: as"));
  EXPECT_THAT(problem_with_flags("command: compare health\nflags: {preset: x}\n"),
              HasSubstr("compare health has no flag '--preset'"));
  EXPECT_THAT(problem_with_flags("command: simulate\nflags: {engine: true}\n"),
              HasSubstr("needs a value"));
  EXPECT_THAT(problem_with_flags("command: simulate\naxes: [{nvls: [true, 3]}]\n"),
              HasSubstr("takes no value such as '3'"));
}

TEST(SweepCost, GuessesFromFlagsAndLearnsFromRows) {
  const Grid grid = parse_grid(R"(
command: simulate
axes: [{engine: [analytic, flow, packet]}, {seed: [1, 2]}]
)",
                               "g.yaml");
  SweepCost cost(grid);
  EXPECT_LT(cost.predict(grid.point(0)), cost.predict(grid.point(2)));
  EXPECT_LT(cost.predict(grid.point(2)), cost.predict(grid.point(4)));
  // Seed 2 turns out to take a hundred times as long.
  for (std::int64_t i = 0; i < 4; ++i) {
    cost.learn(grid.point(i), i % 2 == 0 ? 0.01 : 1.0);
  }
  EXPECT_GT(cost.predict(grid.point(5)), cost.predict(grid.point(4)) + 1);
  EXPECT_EQ(cost.learned(), 4);
}

}  // namespace
}  // namespace lockstep::sweep_grid_test
