// The host launches computations ahead of the GPU, one after the other.
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/replay.h"
#include "tests/support/fabrics.h"

namespace lockstep::replay_host_test {
namespace {

ProgramOp compute(int us, int host_us) {
  ProgramOp op;
  op.compute = Time::us(us);
  op.host = Time::us(host_us);
  return op;
}

/// When each of some computations in a row ends, in microseconds.
std::vector<std::int64_t> ends_of(const std::vector<ProgramOp>& ops) {
  RankPrograms work;
  Program program({StreamOrder::kProgram});
  for (const ProgramOp& op : ops) {
    program.add(op, {});
  }
  program.finish();
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0};
  const Topology topology = testing::rail_optimised(1, 2, 1, 1);
  FlowEngine network(topology);
  std::vector<std::int64_t> ends;
  ReplayOptions options;
  options.traced = [](std::int32_t) { return true; };
  options.on_op = [&](std::int32_t, std::int32_t, const OpTiming& timing) {
    ends.push_back(timing.end.count_ps() / 1'000'000);
  };
  replay(work, {topology.gpus().front()}, topology, network, {}, options);
  return ends;
}

// 3 us of launching for 1 us of work: the host decides. 1 us for 3: the GPU, but for the first.
TEST(ReplayHost, TheSlowerOfHostAndGpuDecides) {
  EXPECT_EQ(ends_of({compute(1, 3), compute(1, 3), compute(1, 3)}),
            (std::vector<std::int64_t>{3, 6, 9}));
  EXPECT_EQ(ends_of({compute(3, 1), compute(3, 1), compute(3, 1)}),
            (std::vector<std::int64_t>{3, 6, 9}));
}

// Behind a long kernel the host gets ahead: it has launched the short ones at 2, 4, 6 and 8.
TEST(ReplayHost, ALongKernelHidesTheLaunchesBehindIt) {
  EXPECT_EQ(ends_of({compute(10, 2), compute(1, 2), compute(1, 2), compute(1, 2)}),
            (std::vector<std::int64_t>{10, 11, 12, 13}));
  EXPECT_EQ(ends_of({compute(1, 2), compute(1, 2), compute(10, 2)}),
            (std::vector<std::int64_t>{2, 4, 14}));
}

TEST(ReplayHost, WithoutHostTimesNothingWaits) {
  EXPECT_EQ(ends_of({compute(1, 0), compute(2, 0)}), (std::vector<std::int64_t>{1, 3}));
}

}  // namespace
}  // namespace lockstep::replay_host_test
