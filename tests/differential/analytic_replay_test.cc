// Steps of models by formula: one rank of each program stands for all, to the picosecond; and they
// agree with the flow engine where little is on the wire at a time.
#include "simulator/replay/analytic_replay.h"

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/exact_workload.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep::analytic_replay_test {
namespace {

TEST(AnalyticReplay, OneRankOfAProgramStandsForAll) {
  // A factor of 1 makes the replay go through every rank.
  const Straggler nobody = Straggler::parse("gpu:0:1");
  Rng rng(7, "analytic");
  for (int i = 0; i < 60; ++i) {
    const Job job = testing::random_job(rng);
    const Workload workload = exact_workload(job, testing::roofline_of(job));
    const StepResult few = analytic_replay(workload, {}, {});
    const StepResult all = analytic_replay(workload, {}, {{&nobody, 1}, 1, 0});
    EXPECT_GT(few.total, Time()) << i;
    EXPECT_EQ(few.total, all.total) << i;
    EXPECT_EQ(few.first_rank_end, all.first_rank_end) << i;
    EXPECT_EQ(few.compute, all.compute) << i;
    EXPECT_EQ(few.bubble, all.bubble) << i;
    EXPECT_EQ(few.exposed_by_group, all.exposed_by_group) << i;
    EXPECT_EQ(few.compute + few.exposed + few.bubble, few.total) << i;
    EXPECT_LE(few.replay_work, all.replay_work) << i;
  }
}

TEST(AnalyticReplay, ASlowRankCostsAtMostItsFactor) {
  Rng rng(11, "analytic");
  const Straggler slow = Straggler::parse("gpu:0:1.5");
  for (int i = 0; i < 20; ++i) {
    const Job job = testing::random_job(rng);
    const Workload workload = exact_workload(job, testing::roofline_of(job));
    const Time without = analytic_replay(workload, {}, {}).total;
    const Time with = analytic_replay(workload, {}, {{&slow, 1}, 1, 0}).total;
    EXPECT_GT(with, without) << i;
    EXPECT_LE(with.seconds(), 1.5 * without.seconds()) << i;
  }
}

/// A llama of 8 wide layers on 16 GPUs of two servers.
Job job_of(std::int64_t tp, std::int64_t pp, std::int64_t ep) {
  Job job;
  job.gpus = 16;
  job.tp = tp;
  job.pp = pp;
  job.ep = ep;
  job.sequence_parallel = tp > 1;
  job.model = testing::llama(8, 4096, 32, 8, 14336, 32000, ep > 1 ? 8 : 0);
  job.seq = 4096;
  job.global_batch = 32;
  return job;
}

// Without what the formulas leave out (contention, the software's time per step) steps agree.
TEST(AnalyticReplay, AgreesWithTheFlowEngine) {
  const Topology topology = topology_from("Spectrum-X:g=16");
  AnalyticOptions options;
  options.nvlink = Bandwidth::bytes_per_second(360e9);  // as the template's links
  options.nic = Bandwidth::bytes_per_second(50e9);
  fmt::print("{:20} {:>12} {:>12} {:>8}\n", "job", "formulas ms", "flow ms", "%");
  // Two whose groups are not a stride apart: stages that hold the same layers under DualPipe, the
  // first and last of four or of eight, and tensor-parallel ranks that lie two and four apart.
  Job ends = job_of(1, 8, 1), apart = job_of(4, 1, 1);
  ends.schedule = "dualpipe";
  apart.cp = 2;
  apart.rank_order = "dp-tp-cp-ep-pp";
  for (const Job& job :
       {job_of(1, 1, 1), job_of(8, 1, 1), job_of(2, 4, 1), job_of(1, 2, 8), ends, apart}) {
    const Workload workload = exact_workload(job, testing::roofline_of(job));
    const Time formulas = analytic_replay(workload, options, {}).total;
    const Time flow =
        testing::replay_workload(workload, topology, {.routes = {.spray = true}}).total;
    const double off = 100 * (formulas.seconds() / flow.seconds() - 1);
    fmt::print("{:20} {:12.3f} {:12.3f} {:8.2f}\n",
               fmt::format("tp {} pp {} ep {}", job.tp, job.pp, job.ep), formulas.us() / 1e3,
               flow.us() / 1e3, off);
    EXPECT_LT(std::abs(off), job.tp >= 4 ? 10 : 1);  // rings here, NVLS or trees there
  }
}

}  // namespace
}  // namespace lockstep::analytic_replay_test
