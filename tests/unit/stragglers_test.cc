#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/rank_speed.h"
#include "simulator/replay/step_sample.h"
#include "simulator/replay/step_simulation.h"
#include "simulator/replay/straggler_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_network.h"
#include "tests/support/run.h"
#include "trace/read_trace.h"

namespace lockstep::stragglers_test {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// A window of factor 2 from 10 to 30: work 15 from 5 on does 5 until 10, 10 in the 20 of the
// window; 25 in all. From 30 on everything is as it was.
TEST(RankSpeed, IntegratesOverWindows) {
  RankSpeed speed;
  speed.add({2, Time::us(10), Time::us(30)});
  EXPECT_EQ(speed.duration(Time::us(5), Time::us(15)), Time::us(25));
  EXPECT_EQ(speed.duration(Time::us(5), Time::us(5)), Time::us(5));
  EXPECT_EQ(speed.duration(Time::us(10), Time::us(3)), Time::us(6));
  EXPECT_EQ(speed.duration(Time::us(30), Time::us(3)), Time::us(3));
}

// Pauses of 2 each 10, the first at 4: work 12 from 0 on takes 4, waits 2, takes 8 (6 … 14), waits
// not again, as it ends where the next pause begins.
TEST(RankSpeed, StandsStillInPauses) {
  RankSpeed speed;
  speed.add({0, Time(), Time::max(), Time::us(10), Time::us(2), Time::us(4)});
  EXPECT_EQ(speed.duration(Time(), Time::us(12)), Time::us(14));
  EXPECT_EQ(speed.duration(Time::us(5), Time::us(1)), Time::us(2));
  RankSpeed dead;
  dead.add({0});
  EXPECT_THROW(dead.duration(Time(), Time::us(1)), Error);
}

TEST(StragglerSpec, ReadsFieldsAndTimes) {
  const Straggler spec = Straggler::parse("link:12-40:0.5@10ms-20ms");
  EXPECT_EQ(spec.model().name, "link");
  EXPECT_EQ(spec.pair(0), std::make_pair(std::int64_t{12}, std::int64_t{40}));
  EXPECT_EQ(spec.number(1, 0, 1), 0.5);
  EXPECT_EQ(spec.from(), Time::us(10'000));
  EXPECT_EQ(spec.until(), Time::us(20'000));
  EXPECT_EQ(Straggler::parse("gc:*:5ms:1s").value(3), "no");
  EXPECT_EQ(Straggler::parse("gpu:0-2,5:2").set(0, 8, "rank"),
            (std::vector<std::int32_t>{0, 1, 2, 5}));
}

TEST(StragglerSpec, EveryErrorNamesThePart) {
  const auto parse = [](const char* text) {
    return error_of([&] {
      const Straggler spec = Straggler::parse(text);
      spec.set(0, 8, "rank");
      spec.number(1, 0.01, 100);
    });
  };
  EXPECT_THAT(parse("gpuu:3:1.5"), HasSubstr("did you mean gpu?"));
  EXPECT_THAT(parse("gpu:3"), HasSubstr("FACTOR: is missing"));
  EXPECT_THAT(parse("gpu:3:1.5:2"), HasSubstr("'2' is one field too many"));
  EXPECT_THAT(parse("gpu:x:1.5"), HasSubstr("GPUS: 'x' names no rank"));
  EXPECT_THAT(parse("gpu:9:1.5"), HasSubstr("GPUS: there is no rank 9; there are 8"));
  EXPECT_THAT(parse("gpu:3:1.5x"), HasSubstr("FACTOR: '1.5x' is no number"));
  EXPECT_THAT(parse("gpu:3:1.5@"), HasSubstr("nothing stands behind the @"));
  EXPECT_THAT(parse("gpu:3:1.5@10"), HasSubstr("FROM: '10' is no time"));
  EXPECT_THAT(parse("gpu:3:1.5@10ms-5ms"), HasSubstr("UNTIL: is not after FROM"));
  EXPECT_THAT(parse("gpu:3:1.5x"), HasSubstr("gpu:GPUS:FACTOR[@FROM[-UNTIL]]"));
}

/// Two servers of two GPUs (0, 1 and 2, 3) with an NVSwitch each (4, 5), and one switch (6):
/// 100 Gbps everywhere, no delay.
Topology two_servers() {
  Topology topology;
  topology.gpus_per_server = 2;
  topology.gpu_types = {"H100"};
  topology.nodes.resize(7);
  for (int i = 0; i < 4; ++i) {
    topology.nodes[static_cast<std::size_t>(i)].server = i / 2;
  }
  for (int i = 4; i < 6; ++i) {
    topology.nodes[static_cast<std::size_t>(i)] = {NodeKind::kNvSwitch, 0, 0, i - 4};
  }
  topology.nodes[6] = {NodeKind::kSwitch, 1, 0, -1};
  topology.link_classes.push_back({Bandwidth::bytes_per_second(12.5e9), Time(), 0, "", "", ""});
  const auto link = [&](int a, int b) { topology.links.push_back({NodeId(a), NodeId(b), 0}); };
  for (int i = 0; i < 4; ++i) {
    link(i, 4 + i / 2);
    link(i, 6);
  }
  return topology;
}

/// Each rank computes 10 ms, then all reduce 125 MB, twice; ranks 0, 1 are stage 0 and 2, 3 stage 1
/// by name.
Workload two_rounds() {
  OpTable table;
  table.groups = {{"dp", {{0, 1, 2, 3}}}, {"pp", {{0, 2}, {1, 3}}}, {"ep", {{0, 1}, {2, 3}}}};
  OpProgram program;
  program.ranks = {{0, 4, 1}};
  program.streams = {"compute", "dp"};
  for (int round = 0; round < 2; ++round) {
    Op op;
    op.compute = Time::us(10'000);
    op.type = OpType::kForward;
    op.microbatch = round;
    if (round > 0) {
      op.after = {static_cast<std::int32_t>(program.ops.size()) - 1};
    }
    program.ops.push_back(op);
    Op reduce;
    reduce.stream = 1;
    reduce.comm = CommType::kAllReduce;
    reduce.group = 0;
    reduce.bytes = Bytes(125'000'000);
    reduce.after = {static_cast<std::int32_t>(program.ops.size()) - 1};
    program.ops.push_back(reduce);
  }
  table.programs = {program};
  Workload workload;
  workload.jobs.push_back({"job", {.gpus = 4, .pp = 2}, std::move(table)});
  return workload;
}

Time step_on(const Topology& topology, std::vector<std::string> specs, std::int64_t step = 0,
             std::uint64_t seed = 1) {
  std::vector<Straggler> stragglers;
  for (const std::string& spec : specs) {
    stragglers.push_back(Straggler::parse(spec));
  }
  StepOptions options;
  options.send_latency = Time();
  options.stragglers = stragglers;
  options.step = step;
  options.seed = seed;
  ScheduleCache schedules;
  return simulate_step(
             two_rounds(), topology, [&] { return std::make_unique<FlowEngine>(topology); },
             [&](CommType op, Bytes bytes, const GroupShape& shape) {
               return schedules.get({.op = op, .bytes = bytes}, shape);
             },
             options)
      .total;
}

Time step_with(std::vector<std::string> specs, std::int64_t step = 0, std::uint64_t seed = 1) {
  return step_on(two_servers(), std::move(specs), step, seed);
}

double ms(Time time) { return time.seconds() * 1e3; }

// Both rounds wait for the slowest rank: 2 x 10 ms x (1.5 - 1) more.
TEST(Stragglers, SlowGpuStageAndServerCostWhatTheyLose) {
  const double clean = ms(step_with({}));
  EXPECT_NEAR(ms(step_with({"gpu:3:1.5"})) - clean, 10, 2e-3);
  EXPECT_NEAR(ms(step_with({"node:1:1.5"})) - clean, 10, 2e-3);
  EXPECT_NEAR(ms(step_with({"stage:1:1.5"})) - clean, 10, 2e-3);
  EXPECT_NEAR(ms(step_with({"gpu:3:1.5", "gpu:0:1.2"})) - clean, 10, 2e-3);
  EXPECT_NEAR(ms(step_with({"gpu:3:1.5", "gpu:3:2"})) - clean, 40, 2e-3);
  // Only until 5 ms: 5 ms of time do 10/3 ms of work.
  EXPECT_NEAR(ms(step_with({"gpu:3:1.5@0s-5ms"})) - clean, 5 - 10.0 / 3, 2e-3);
}

// One pause of 3 ms each 100 ms, planned at one time for all ranks, costs at most 3 ms.
TEST(Stragglers, Pauses) {
  const double clean = ms(step_with({}));
  const double cost = ms(step_with({"gc:*:3ms:1s:yes@0s"})) - clean;
  EXPECT_GE(cost, 0);
  EXPECT_LE(cost, 3 + 1e-6);
  const double often = ms(step_with({"gc:0:3ms:6ms"})) - clean;
  EXPECT_GT(often, 16);  // half of the time: each 10 ms take 20, less what a pause's place spares
}

// The ring over both servers is as fast as its slowest cable: with half of it the two all-reduces
// take twice as long.
TEST(Stragglers, SlowLinksCostWhatTheyLose) {
  const double clean = ms(step_with({}));
  const double half = ms(step_with({"link:0-6:0.5"}));
  EXPECT_GT(half, clean + 1);
  EXPECT_NEAR(ms(step_with({"switch:6:0.5"})) - 20, 2 * (clean - 20), 0.05);
  EXPECT_NEAR(ms(step_with({"nic:*:0.5"})) - 20, 2 * (clean - 20), 0.05);
  EXPECT_NEAR(ms(step_with({"rail:*:0.5"})) - 20, 2 * (clean - 20), 0.05);
  EXPECT_NEAR(ms(step_with({"nic:*:0.5@0s-1us"})), clean, 1e-3);
  // Go-back-N with 1 % and a window of 100: 0.99 / 1.99 is left.
  EXPECT_NEAR(ms(step_with({"loss:0-6:0.01:100"})), ms(step_with({"link:0-6:0.497487437"})), 1e-4);
  // 50 of the 100 Gbps are someone else's.
  EXPECT_GT(ms(step_with({"background:0-2:50Gbps"})), clean + 1);
  EXPECT_GE(half, ms(step_with({"background:0-2:50Gbps"})));
}

TEST(Stragglers, DownWaitsOrHangs) {
  const double clean = ms(step_with({}));
  // The first all-reduce starts at 10 ms, and its cable is away from then for 30 ms.
  EXPECT_NEAR(ms(step_with({"down:6@10ms-40ms"})) - clean, 30, 0.01);
  const std::string hangs = error_of([] { step_with({"down:0-6@12ms"}); });
  EXPECT_THAT(hangs, HasSubstr("the step hangs"));
  EXPECT_THAT(hangs, HasSubstr("sending to rank"));
  EXPECT_THAT(hangs, HasSubstr("over link 0-6, down since 12 ms"));
  EXPECT_THAT(hangs, HasSubstr("(allreduce of 119.2 MiB)"));
}

/// Takes on a number of changes, and no more.
class TakesSomeChanges : public testing::FakeNetwork {
 public:
  explicit TakesSomeChanges(int most) : left_(most) {}
  bool plan_change(Time, PortId, double, double) override { return left_-- > 0; }

 private:
  int left_;
};

// An engine makes all changes of links by itself, or none; where it takes some the others would be
// made at their time and those twice.
TEST(Stragglers, AnEngineThatTakesSomeChangesIsRefused) {
  const std::vector<Straggler> stragglers = {Straggler::parse("link:0-6:0.5@1ms"),
                                             Straggler::parse("link:1-6:0.5@1ms")};
  const Topology topology = two_servers();
  StepOptions options;
  options.stragglers = stragglers;
  ScheduleCache schedules;
  const auto run = [&](int most) {
    simulate_step(
        two_rounds(), topology, [&] { return std::make_unique<TakesSomeChanges>(most); },
        [&](CommType op, Bytes bytes, const GroupShape& shape) {
          return schedules.get({.op = op, .bytes = bytes}, shape);
        },
        options);
  };
  EXPECT_THAT(error_of([&] { run(1); }), HasSubstr("takes on some of the links' changes"));
  EXPECT_EQ(error_of([&] { run(4); }), "no error");
  EXPECT_THAT(error_of([&] { run(0); }), HasSubstr("cannot change links while it runs"));
}

// Servers of two GPUs joined by NVLink only where a cable fails: nothing else can carry it. With a
// second switch there is another way, taken after REROUTE.
TEST(Stragglers, DownIsReroutedWhereThereIsAnotherWay) {
  Topology topology = two_servers();
  topology.nodes.push_back({NodeKind::kSwitch, 1, 0, -1});
  for (int i = 0; i < 4; ++i) {
    topology.links.push_back({NodeId(i), NodeId(7), 0});
  }
  const auto with_two_switches = [&](std::vector<std::string> specs) {
    return step_on(topology, std::move(specs));
  };
  const double clean = ms(with_two_switches({}));
  // One switch is away for good; all meet on the other, at the latest from 11 + 3 ms on.
  const double rerouted = ms(with_two_switches({"down:6:3ms@11ms"}));
  EXPECT_GT(rerouted, clean);
  EXPECT_LT(rerouted, ms(step_with({})) + 3 + 0.01);
  EXPECT_GT(ms(with_two_switches({"down:6:8ms@11ms"})), rerouted + 1);
  EXPECT_THAT(error_of([&] { with_two_switches({"down:6:never@11ms"}); }),
              HasSubstr("the step hangs"));
}

// What a trace measured: data-parallel rank 2's forward passes took 1.5 times as long as the
// others' in microbatch 0, and all took as long in microbatch 1, whose twofold length is the
// median's.
TEST(Stragglers, PassesOfATraceVaryAsTheyDidThere) {
  const testing::ScratchFolder folder;
  Trace trace;
  for (int dp = 0; dp < 4; ++dp) {
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      const float duration = dp == 2 && microbatch == 0 ? 0.03F : 0.02F;
      add_row(trace,
              {dp, 0, dp, 7, TraceOp::kForwardCompute, 0, duration, microbatch, 0, microbatch, 0});
    }
  }
  write_trace(trace, folder / "t.csv");
  const double clean = ms(step_with({}));
  EXPECT_NEAR(ms(step_with({"trace:" + (folder / "t.csv")})) - clean, 5, 2e-3);
  EXPECT_NEAR(ms(step_with({"trace:" + (folder / "t.csv") + ":0-1"})) - clean, 0, 2e-3);
  EXPECT_THAT(error_of([&] { step_with({"trace:" + (folder / "none.csv")}); }),
              HasSubstr("none.csv"));
  Trace empty;
  add_row(empty, {0, 0, 0, 0, TraceOp::kOptimizer, 0, 1});
  write_trace(empty, folder / "e.csv");
  EXPECT_THAT(error_of([&] { step_with({"trace:" + (folder / "e.csv")}); }),
              HasSubstr("FILE: the trace has no forward or backward passes"));
}

TEST(Stragglers, DrawsDependOnSeedAndStepAlone) {
  for (const std::string spec : {"jitter:*:lognormal:0.1", "jitter:*:exponential:0.1:op",
                                 "seqlen:0.5", "experts:0.5", "thermal:*:1.5:5ms:0.5"}) {
    const Time first = step_with({spec});
    EXPECT_EQ(first, step_with({spec})) << spec;
    EXPECT_NE(first, step_with({spec}, 1)) << spec;
    EXPECT_NE(first, step_with({spec}, 0, 2)) << spec;
  }
}

TEST(Stragglers, EveryModelIsInTheHelp) {
  const std::string help = straggler_help();
  for (const StragglerModel* model : straggler_models()) {
    EXPECT_THAT(help, HasSubstr(usage_of(*model)));
    EXPECT_FALSE(model->summary.empty());
  }
}

TEST(StepSample, SameResultOnAnyNumberOfThreads) {
  const std::vector<Straggler> stragglers{Straggler::parse("jitter:*:normal:0.1")};
  const RunStep run = [](std::span<const Straggler> given, std::int64_t step) {
    return step_with({given.front().text()}, step);
  };
  const StepSample one = sample_steps(stragglers, 12, 1, 1, run);
  const StepSample four = sample_steps(stragglers, 12, 1, 4, run);
  EXPECT_EQ(one.totals, four.totals);
  EXPECT_EQ(one.mean, four.mean);
}

}  // namespace
}  // namespace lockstep::stragglers_test
