#include "simulator/replay/step_trace.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/simulator.h"
#include "analysis/whatif/whatif.h"
#include "base/error.h"
#include "generator/exact/exact_workload.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/exact_models.h"
#include "tests/support/run.h"
#include "trace/read_trace.h"

namespace lockstep::step_trace_test {
namespace {

Job job_of(std::int64_t pp, std::int64_t vpp, std::int64_t dp) {
  Job job;
  job.model = testing::llama(8, 64, 8, 4, 128, 256, 0);
  job.pp = pp;
  job.vpp = vpp;
  job.gpus = pp * dp;
  job.seq = 128;
  job.global_batch = 8 * dp;
  job.sharding = Sharding::kZero1;
  return job;
}

struct Simulated {
  Trace trace;
  JobMeta meta;
  StepResult result;
};

/// 8 GPUs on an NVSwitch.
Simulated simulate(const Job& job, const std::vector<Straggler>& stragglers,
                   double bytes_per_second = 450e9, bool first_workers = false) {
  Topology topology;
  topology.nodes.resize(9);
  for (Node& node : topology.nodes) {
    node.server = 0;
  }
  topology.nodes[8].kind = NodeKind::kNvSwitch;
  topology.link_classes.push_back(
      {Bandwidth::bytes_per_second(bytes_per_second), Time::ns(500), 0, "", "", ""});
  for (int gpu = 0; gpu < 8; ++gpu) {
    topology.links.push_back({NodeId(gpu), NodeId(8), 0});
  }
  Simulated out;
  StepOptions options;
  options.stragglers = stragglers;
  options.trace = &out.trace;
  options.trace_first_workers = first_workers;
  options.meta = &out.meta;
  ScheduleCache schedules;
  const Workload workload =
      exact_workload(job, [](const Operator& op) { return Time::us(op.flops > 0 ? 100 : 1); });
  out.result = simulate_step(
      workload, topology, [&] { return std::make_unique<FlowEngine>(topology); },
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedules.get({.op = op, .bytes = bytes}, shape);
      },
      options);
  return out;
}

/// How far what-if's own replay of the trace is from the trace: 1 when all waiting is explained by
/// its dependencies.
double launch_slowdown_of(Trace trace, const JobMeta& meta) {
  using namespace whatif;
  sort_rows(trace);
  Warnings warnings;
  const whatif::OpTable table = make_op_table(trace, "t", {}, &warnings);
  const DependencyGraph graph = make_dependency_graph(table, meta, "t", &warnings);
  const Simulator simulator(table, graph, "t");
  const Traced traced = measure(table, graph);
  const whatif::Model model =
      make_model(table, graph, simulator, traced,
                 std::vector<double>(traced.step_start_s.begin(), traced.step_start_s.end()));
  return launch_slowdown({table, graph, simulator, traced, model});
}

struct Shape {
  std::int64_t pp, vpp, dp;
};

TEST(StepTrace, WhatIfUnderstandsEveryWait) {
  for (const Shape shape : {Shape{1, 1, 8}, Shape{2, 1, 4}, Shape{4, 1, 2}, Shape{2, 2, 4}}) {
    for (const bool slow : {false, true}) {
      const Simulated run =
          simulate(job_of(shape.pp, shape.vpp, shape.dp),
                   slow ? std::vector{Straggler::parse("gpu:3:1.5")} : std::vector<Straggler>());
      ASSERT_NO_THROW(check_rows(run.trace, "t"));
      EXPECT_EQ(run.meta.world_size, 8);
      EXPECT_NEAR(launch_slowdown_of(run.trace, run.meta), 1, 0.005)
          << shape.pp << " " << shape.vpp << " " << shape.dp;
    }
  }
}

// Buckets that are gathered and reduced beside the passes hold up no pass but the first: on links
// so slow that they last as long as the passes, what-if's replay takes no longer than the trace
// did.
TEST(StepTrace, GathersBesidePassesHoldUpTheFirstAlone) {
  for (const Sharding sharding : {Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
    for (const Shape shape : {Shape{1, 1, 8}, Shape{2, 1, 4}, Shape{2, 2, 4}}) {
      Job job = job_of(shape.pp, shape.vpp, shape.dp);
      job.sharding = sharding;
      const Simulated run = simulate(job, {}, 1e9);
      float gathered = 0;
      for (std::size_t i = 0; i < run.trace.size(); ++i) {
        gathered += run.trace.optype[i] == TraceOp::kParamsAllGather ? run.trace.duration_s[i] : 0;
      }
      EXPECT_GT(gathered, 0);
      const double launch = launch_slowdown_of(run.trace, run.meta);
      EXPECT_GE(launch, 1 - 1e-5) << shape.pp << " " << shape.vpp;
      // With ZeRO-3 later passes wait as well, which shows as launch gaps.
      EXPECT_LE(launch, sharding == Sharding::kZero3 ? 1.15 : 1.02) << shape.pp << " " << shape.vpp;
    }
  }
}

// The slow rank's passes take its factor, everyone else's as long as before, and the step ends
// where the simulation says.
TEST(StepTrace, ShowsTheStraggler) {
  const Simulated clean = simulate(job_of(2, 1, 4), {});
  const Simulated slow = simulate(job_of(2, 1, 4), {Straggler::parse("gpu:3:1.5")});
  ASSERT_EQ(clean.trace.size(), slow.trace.size());
  float end = 0;
  int seen = 0;
  for (std::size_t i = 0; i < clean.trace.size(); ++i) {
    const TraceRow a = row_at(clean.trace, i), b = row_at(slow.trace, i);
    ASSERT_EQ(a.optype, b.optype);
    end = std::max(end, b.start_s + b.duration_s);
    if (is_compute(a.optype)) {
      EXPECT_NEAR(b.duration_s / a.duration_s, b.rank == 3 ? 1.5 : 1, 1e-3);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 8 * 2 * 8);
  EXPECT_NEAR(end, slow.result.total.seconds(), 1e-6);
}

// What nobody is late for the worker waits alone as it did; whom others hold up it would wait less.
TEST(StepTrace, SaysWhatEachWorkerWouldWaitAlone) {
  Job job = job_of(1, 1, 4);
  job.gpus = 8;
  job.tp = 2;
  job.sequence_parallel = true;
  for (const bool slow : {false, true}) {
    const Trace trace =
        simulate(job, slow ? std::vector{Straggler::parse("gpu:1:1.5")} : std::vector<Straggler>())
            .trace;
    ASSERT_EQ(trace.extra.alone_s.size(), trace.size());
    int seen = 0;
    std::map<int, float> clip;  // by rank
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const float alone = trace.extra.alone_s[i], waited = trace.duration_s[i];
      if (is_peer_comm(trace.optype[i])) {
        ++seen;
        EXPECT_GT(alone, 0);
        if (slow && trace.rank[i] == 0) {
          EXPECT_LT(alone, waited / 2);
        } else if (slow && trace.rank[i] == 1) {
          EXPECT_GT(alone, waited);  // what its peer has sent is there when it comes
          EXPECT_LT(alone, 1.2 * waited);
        } else {
          EXPECT_NEAR(alone, waited, 0.05 * waited);
        }
      } else if (trace.optype[i] == TraceOp::kOptimizerClip) {
        clip[trace.rank[i]] = alone;
      } else if (trace.optype[i] != TraceOp::kGradsReduceScatter) {
        EXPECT_EQ(alone, -1);
      }
    }
    EXPECT_EQ(seen, 8 * 2 * 8);
    EXPECT_GT(clip[0], 0);
    EXPECT_EQ(clip[0] < clip[1], slow);  // the norm of its gradients takes it longer
    const ScratchFolder folder;
    write_trace(trace, folder / "t.csv");
    Trace read = read_trace(folder / "t.csv");
    EXPECT_EQ(read.extra.alone_s, trace.extra.alone_s);
    EXPECT_TRUE(read.extra.undisturbed_s.empty());  // nothing slows computations down
    read.extra.alone_s[3] = -2;
    EXPECT_THROW(check_rows(read, "t"), Error);
    Trace more = trace;
    more.extra.undisturbed_s = trace.duration_s;
    for (const char* name : {"more.csv", "more.parquet"}) {
      if (has_parquet() || std::string_view(name).ends_with(".csv")) {
        write_trace(more, folder / name);
        read = read_trace(folder / name);
        EXPECT_EQ(read.extra.undisturbed_s, more.extra.undisturbed_s);
        EXPECT_EQ(read.extra.alone_s, more.extra.alone_s);
        read.extra.undisturbed_s[3] = -2;
        EXPECT_THROW(check_rows(read, "t"), Error);
      }
    }
    Trace without = trace;  // a trace may do without
    without.extra.alone_s.clear();
    for (const char* name : {"without.csv", "without.parquet"}) {
      if (has_parquet() || std::string_view(name).ends_with(".csv")) {
        write_trace(without, folder / name);
        read = read_trace(folder / name);
        EXPECT_TRUE(read.extra.alone_s.empty());
        EXPECT_EQ(read.extra.ep_rank, trace.extra.ep_rank);
      }
    }
  }
}

// Split schedules: a row for each microbatch's weights' gradients, behind its backward pass, and
// nothing in gc. The original tools know no such rows: of the first workers alone gc has what is
// left of them.
TEST(StepTrace, GradientsOfWeightsHaveRows) {
  Job job = job_of(2, 1, 4);
  job.schedule = "zb-h1";
  const Simulated all = simulate(job, {});
  EXPECT_EQ(all.meta.gradients_behind_gc, 0);
  EXPECT_NEAR(launch_slowdown_of(all.trace, all.meta), 1, 1e-3);
  std::map<std::tuple<int, int>, float> backward;  // by rank and microbatch: its end
  int weights = 0;
  float left = 0;
  for (std::size_t i = 0; i < all.trace.size(); ++i) {
    const Trace& trace = all.trace;
    const std::tuple pass(trace.rank[i], trace.mb_id[i]);
    if (trace.optype[i] == TraceOp::kBackwardCompute) {
      backward[pass] = trace.start_s[i] + trace.duration_s[i];
    } else if (trace.optype[i] == TraceOp::kWeightCompute) {
      ++weights;
      EXPECT_GE(trace.start_s[i], backward.at(pass) - 1e-6F);
      EXPECT_GT(trace.duration_s[i], 0);
    } else if (trace.optype[i] == TraceOp::kGc) {
      left += trace.duration_s[i];
    }
  }
  EXPECT_EQ(weights, 8 * 8);
  EXPECT_EQ(left, 0);
}

// ZeRO-2 reduces gradients in every microbatch: two rows for each, in the order of their stream,
// one to where the pass may still hide it and one behind that and the pass. On links so slow that
// they queue up what-if's replay takes what the step did. The original tools know one row a chunk,
// and of the first workers alone there is no other.
TEST(StepTrace, ReductionsOfEveryMicrobatchHaveRows) {
  for (const std::int64_t vpp : {1, 2}) {
    for (const double bytes_per_second : {450e9, 5e7}) {
      Job job = job_of(2, vpp, 4);
      job.sharding = Sharding::kZero2;
      const Simulated run = simulate(job, {Straggler::parse("gpu:3:1.5")}, bytes_per_second);
      EXPECT_NEAR(launch_slowdown_of(run.trace, run.meta), 1, 1e-4);
      std::map<std::tuple<int, int, int>, float> passed;  // by rank, chunk, microbatch
      std::map<int, float> end;                           // by rank, of the row before
      int seen = 0, backed_up = 0;
      for (std::size_t i = 0; i < run.trace.size(); ++i) {
        const Trace& trace = run.trace;
        const std::tuple pass(trace.rank[i], trace.mc[i], trace.mb_id[i]);
        const float ends = trace.start_s[i] + trace.duration_s[i];
        if (trace.optype[i] == TraceOp::kBackwardCompute) {
          passed[pass] = ends;
        } else if (trace.optype[i] == TraceOp::kGradsReduceScatter) {
          const bool behind = trace.seq_id[i] % 2 == 1;
          float& before = end[trace.rank[i]];
          EXPECT_GE(trace.start_s[i], before - 1e-7F);
          if (behind) {
            EXPECT_GE(trace.start_s[i], passed.at(pass) - 1e-7F);
            backed_up += trace.rank[i] == 3 && trace.start_s[i] > passed.at(pass) + 1e-6F ? 1 : 0;
          }
          EXPECT_GE(trace.extra.alone_s[i], 0);
          EXPECT_EQ(trace.extra.bytes[i] > 0, behind);
          before = ends;
          ++seen;
        }
      }
      EXPECT_EQ(seen, 8 * 8 * vpp * 2);
      EXPECT_EQ(backed_up > 8 * vpp / 2, bytes_per_second < 1e9);  // whom nobody holds up
      const Simulated first = simulate(job, {}, bytes_per_second, true);
      EXPECT_EQ(std::ranges::count(first.trace.optype, TraceOp::kGradsReduceScatter), 8 * vpp);
    }
  }
}

TEST(StepTrace, RefusesWorkOfUnknownKind) {
  OpTable table;
  table.programs.push_back({{{0, 1, 1}}, {"compute"}, {Op{}}});
  EXPECT_THROW(StepTrace(table, {.gpus = 1}), Error);
}

// Two stages of four ranks: messages of 128 tokens, 64 wide, two bytes each.
TEST(StepTrace, SaysBytesGroupsAndPlaces) {
  const Trace trace = simulate(job_of(2, 1, 4), {}).trace;
  ASSERT_EQ(trace.extra.bytes.size(), trace.size());
  std::int64_t messages = 0, reductions = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const std::string& group = trace.extra.group[i];
    if (trace.optype[i] == TraceOp::kForwardSend) {
      EXPECT_EQ(trace.extra.bytes[i], 128 * 64 * 2);
      EXPECT_EQ(group, "pp[" + std::to_string(trace.dp_rank[i]) + "]");
      ++messages;
    } else if (trace.optype[i] == TraceOp::kGradsReduceScatter) {
      EXPECT_GT(trace.extra.bytes[i], 0);
      EXPECT_EQ(group, "dp[" + std::to_string(trace.stage[i]) + "]");
      ++reductions;
    } else if (is_compute(trace.optype[i])) {
      EXPECT_EQ(group, "");
    }
    EXPECT_EQ(trace.extra.tp_rank[i] + trace.extra.cp_rank[i] + trace.extra.ep_rank[i], 0);
  }
  EXPECT_EQ(messages, 4 * 8);
  EXPECT_EQ(reductions, 8);
}

}  // namespace
}  // namespace lockstep::step_trace_test
