#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/fake_network.h"
#include "workloads/validate.h"
#include "workloads/workload_json.h"

namespace lockstep::op_peers_test {
namespace {

using ::testing::HasSubstr;

Op message(bool send, std::int32_t places, std::int64_t bytes) {
  Op op;
  op.name = send ? "send" : "receive";
  op.comm = CommType::kSendRecv;
  op.group = 0;
  op.peer = places;
  op.send = send;
  op.stream = send ? 0 : 1;
  op.bytes = Bytes(bytes);
  return op;
}

/// Three ranks in a ring, one program: each sends to the next and receives from the one before.
Workload ring(std::int64_t sent = 1000, std::int64_t received = 1000) {
  OpTable table;
  table.groups = {{"cp", {{2, 0, 1}}}};
  OpProgram program;
  program.ranks = {{0, 3, 1}};
  program.streams = {"out", "in"};
  program.ops = {message(true, 1, sent), message(false, -1, received)};
  table.programs = {program};
  Workload workload;
  workload.jobs.push_back({"ring", {.gpus = 3}, table});
  return workload;
}

std::string error_of(const Workload& workload) {
  try {
    validate(workload);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

OpTable& table_of(Workload& workload) { return std::get<OpTable>(workload.jobs[0].work); }

TEST(OpPeers, RingOfOneProgramIsValidAndReadsBack) {
  const Workload workload = ring();
  EXPECT_EQ(error_of(workload), "");
  EXPECT_EQ(read_workload_json(to_workload_json(workload), "ring.json"), workload);
}

TEST(OpPeers, DisagreementIsNamed) {
  EXPECT_THAT(error_of(ring(1000, 999)),
              HasSubstr("rank 2 sends 1 messages (1000 bytes) to rank 0, which receives 1 (999 "
                        "bytes) from it"));
  Workload deaf = ring();
  table_of(deaf).programs[0].ops.pop_back();
  EXPECT_THAT(error_of(deaf), HasSubstr("receives 0 (0 bytes)"));
  Workload both_next = ring();
  table_of(both_next).programs[0].ops[1].peer = 1;
  EXPECT_THAT(error_of(both_next), HasSubstr("rank 0 sends 0 messages (0 bytes) to rank 2"));
}

TEST(OpPeers, SelfAndUnequalGroupsAreRefused) {
  Workload self = ring();
  table_of(self).programs[0].ops[0].peer = -3;
  EXPECT_THAT(error_of(self), HasSubstr("-3 places on in a group of 3 is the rank itself"));
  Workload unequal = ring();
  table_of(unequal).groups[0].members = {{0, 1}, {2}};
  EXPECT_THAT(error_of(unequal), HasSubstr("differ in size"));
  Workload outside = ring();
  table_of(outside).groups[0].members = {{0, 1}};
  EXPECT_THAT(error_of(outside), HasSubstr("rank 2 is in no group"));
}

std::shared_ptr<const Schedule> one_transfer(CommType op, Bytes bytes, const GroupShape& shape) {
  auto schedule = std::make_shared<Schedule>();
  schedule->op = op;
  schedule->ranks = shape.ranks;
  schedule->chunk_bytes = bytes;
  schedule->add({.source = 0, .destination = 1}, {});
  return schedule;
}

// Sent after 1000 ns, delivered 1000 ns later, on all three ranks at once; also beside another job,
// whose ranks come first.
TEST(OpPeers, ReplayFindsEachRanksPeer) {
  Workload workload = ring();
  workload.jobs.push_back(workload.jobs[0]);
  workload.jobs[1].name = "second";
  Topology topology;
  topology.nodes.resize(6);
  const StepResult result =
      simulate_step(workload, topology, [] { return std::make_unique<testing::FakeNetwork>(); },
                    one_transfer, {.send_latency = Time()});
  EXPECT_EQ(result.total, Time::us(2));
  EXPECT_EQ(result.first_rank_end, Time::us(2));
  EXPECT_EQ(result.flows, 6);
  EXPECT_EQ(result.exposed_by_group[static_cast<std::size_t>(GroupKind::kCp)], Time::us(2));
}

// Two ranks: next and previous are the same rank, so both messages must not be taken for one.
TEST(OpPeers, NextAndPreviousInAPair) {
  Workload workload = ring();
  OpTable& table = table_of(workload);
  table.groups[0].members = {{0, 1}};
  table.programs[0].ranks = {{0, 2, 1}};
  table.programs[0].ops.push_back(message(true, -1, 500));
  table.programs[0].ops.push_back(message(false, 1, 500));
  workload.jobs[0].parallel.gpus = 2;
  EXPECT_EQ(error_of(workload), "");
  Topology topology;
  topology.nodes.resize(2);
  const StepResult result =
      simulate_step(workload, topology, [] { return std::make_unique<testing::FakeNetwork>(); },
                    one_transfer, {.send_latency = Time()});
  EXPECT_EQ(result.flows, 4);
  EXPECT_EQ(result.total, Time::ns(1000 + 500 + 1000));  // one after the other on each stream
}

}  // namespace
}  // namespace lockstep::op_peers_test
