#include "simulator/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/replay/layer_report.h"
#include "simulator/replay/op_table_program.h"
#include "simulator/replay/parallel_groups.h"
#include "simulator/replay/simai_program.h"
#include "tests/support/fake_network.h"

namespace lockstep::replay_test {
namespace {

using ::testing::HasSubstr;

/// Every rank sends the whole message to the next one; nothing waits for anything.
std::shared_ptr<const Schedule> one_lap(CommType op, Bytes bytes, const GroupShape& shape) {
  auto schedule = std::make_shared<Schedule>();
  schedule->op = op;
  schedule->ranks = shape.ranks;
  schedule->chunk_bytes = bytes;
  const std::int32_t senders = op == CommType::kSendRecv ? 1 : shape.ranks;
  for (std::int32_t i = 0; i < senders; ++i) {
    schedule->add({.source = i, .destination = (i + 1) % shape.ranks}, {});
  }
  return schedule;
}

/// All ranks on one server.
Topology gpus(int count) {
  Topology topology;
  topology.nodes.resize(static_cast<std::size_t>(count));
  for (Node& node : topology.nodes) {
    node.server = 0;
  }
  return topology;
}

ReplayResult run(const RankPrograms& work, ReplayOptions options = {.send_latency = Time()}) {
  testing::FakeNetwork network;
  const Topology topology = gpus(work.ranks());
  return replay(work, topology.gpus(), topology, network, one_lap, options);
}

ProgramOp compute(Time time) {
  ProgramOp op;
  op.compute = time;
  return op;
}

ProgramOp collective(CommType type, std::int64_t bytes, std::int32_t stream) {
  ProgramOp op;
  op.comm = type;
  op.bytes = Bytes(bytes);
  op.stream = stream;
  op.family = 0;
  return op;
}

/// Two ranks, one group, each its own program: compute for so long, then an all-reduce.
RankPrograms two_ranks(Time first, Time second, std::int64_t second_bytes = 2000) {
  RankPrograms work;
  for (const auto& [time, bytes] : {std::pair{first, std::int64_t{2000}}, {second, second_bytes}}) {
    Program program({StreamOrder::kProgram, StreamOrder::kProgram});
    const std::int32_t computed = program.add(compute(time), {});
    program.add(collective(CommType::kAllReduce, bytes, 1), {{computed}});
    program.finish();
    work.programs.push_back(std::move(program));
  }
  work.program_of_rank = {0, 1};
  work.families.emplace_back(GroupKind::kTp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  return work;
}

TEST(Replay, LateRankDelaysOnlyThoseThatWaitForIt) {
  // Rank 0 enters at 10 us and has sent at 12; rank 1 enters at 20, has sent at 22, delivers at 23.
  // Rank 1 got rank 0's message at 13, so it ends when its own has left: 22. Rank 0 ends at 23.
  const ReplayResult result = run(two_ranks(Time::us(10), Time::us(20)));
  EXPECT_EQ(result.rank_end, (std::vector{Time::us(23), Time::us(22)}));
  EXPECT_EQ(result.end, Time::us(23));
  EXPECT_EQ(result.transfers, 2);
  EXPECT_EQ(result.first_rank[1].ready, Time::us(10));
  EXPECT_EQ(result.first_rank[1].end, Time::us(23));
}

TEST(Replay, SendLatencyPrecedesEveryTransfer) {
  const ReplayResult result =
      run(two_ranks(Time::us(10), Time::us(10)), {.send_latency = Time::us(6)});
  EXPECT_EQ(result.end, Time::us(10 + 6 + 2 + 1));
}

// With a limit of its work a replay is asked after each moment; else the collective deals with
// those at which no rank finishes by itself. Ends, timings and work are the same.
TEST(Replay, MomentsThatConcernNoRankCountAsTheOthers) {
  constexpr int kRanks = 16;
  RankPrograms work;
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    Program program({StreamOrder::kProgram, StreamOrder::kProgram});
    const std::int32_t computed = program.add(compute(Time::ns(rank * rank * 700)), {});
    program.add(collective(CommType::kAllReduce, 16000, 1), {{computed}});
    program.finish();
    work.programs.push_back(std::move(program));
    work.program_of_rank.push_back(rank);
    all.push_back(rank);
  }
  work.families.emplace_back(GroupKind::kTp, std::vector<std::vector<std::int32_t>>{all}, kRanks);
  const auto ring = [](CommType op, Bytes bytes, const GroupShape& shape) {
    return std::make_shared<const Schedule>(
        algorithm_named("ring", op).build({.op = op, .bytes = bytes, .channels = 1}, shape));
  };
  const Topology topology = gpus(kRanks);
  std::vector<ReplayResult> results;
  for (const std::int64_t most_work : {std::int64_t{0}, std::int64_t{1} << 40}) {
    testing::FakeNetwork network;
    ReplayOptions options{.send_latency = Time::ns(10)};
    options.limits.most_work = most_work;
    results.push_back(replay(work, topology.gpus(), topology, network, ring, options));
  }
  EXPECT_EQ(results[0].rank_end, results[1].rank_end);
  EXPECT_EQ(results[0].transfers, 2 * kRanks * (kRanks - 1));
  EXPECT_EQ(results[0].transfers, results[1].transfers);
  EXPECT_EQ(results[0].work, results[1].work);
}

TEST(Replay, RanksThatDisagreeAreNamed) {
  try {
    run(two_ranks(Time::us(1), Time::us(2), 4000));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 does allreduce of 1.953 KiB"));
    EXPECT_THAT(error.what(), HasSubstr("rank 1 does allreduce of 3.906 KiB"));
  }
}

TEST(Replay, CyclicWaitIsNamedNotAHang) {
  // Rank 0 never enters the second all-reduce.
  RankPrograms work = two_ranks(Time::us(1), Time::us(2));
  Program& second = work.programs[1];
  Program longer({StreamOrder::kProgram, StreamOrder::kProgram});
  longer.add(collective(CommType::kAllReduce, 2000, 1), {});
  longer.add(collective(CommType::kAllGather, 64, 1), {{0}});
  longer.finish();
  second = std::move(longer);
  try {
    run(work);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1 of 2 ranks"));
    EXPECT_THAT(error.what(),
                HasSubstr("rank 1: in op 1 (allgather of 64 B), waiting for rank 0 to enter it"));
  }
}

/// Both run it, and are a group.
RankPrograms on_two_ranks(Program program) {
  RankPrograms work;
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0};
  work.families.emplace_back(GroupKind::kDp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  return work;
}

TEST(Replay, NewestFirstQueueOvertakes) {
  // All ready at 0 on a queue that runs one at a time: op 0 starts at once, then 2 before 1.
  Program program({StreamOrder::kNewestFirst});
  for (int i = 0; i < 3; ++i) {
    program.add(collective(CommType::kAllReduce, 1000, 0), {});
  }
  program.finish();
  const ReplayResult result = run(on_two_ranks(std::move(program)));
  EXPECT_EQ(result.first_rank[0].end, Time::us(2));
  EXPECT_EQ(result.first_rank[2].end, Time::us(4));
  EXPECT_EQ(result.first_rank[1].end, Time::us(6));
}

// The first lasts from 0 to 2 us and has an update time of 5 us, which what comes after it waits
// for, but the queue does not: the second lasts from 2 to 4 us.
TEST(Replay, UpdateTimeHoldsUpNoQueue) {
  Program program({StreamOrder::kProgram, StreamOrder::kNewestFirst});
  ProgramOp first = collective(CommType::kAllReduce, 1000, 0);
  first.stream = 1;
  first.compute = Time::us(5);
  const std::int32_t updated = program.add(first, {});
  ProgramOp second = collective(CommType::kAllReduce, 1000, 0);
  second.stream = 1;
  program.add(second, {});
  program.add({.compute = Time::us(1)}, {&updated, 1});
  program.finish();
  const ReplayResult result = run(on_two_ranks(std::move(program)));
  EXPECT_EQ(result.first_rank[0].end, Time::us(7));
  EXPECT_EQ(result.first_rank[1].end, Time::us(4));
  EXPECT_EQ(result.first_rank[2].end, Time::us(8));
}

TEST(Replay, SendAndReceiveMatchByPair) {
  // 0 sends to 1 after 5 us: sent at 6 us, delivered at 7 us; rank 1 waits from 0 on.
  OpTable table;
  OpProgram sender{{{0, 1, 1}}, {"compute", "pp"}, {}};
  sender.ops.push_back({"work", 0, Time::us(5), CommType::kNone, -1, -1, false, Bytes(), {}});
  sender.ops.push_back({"send", 1, Time(), CommType::kSendRecv, -1, 1, true, Bytes(1000), {0}});
  OpProgram receiver{{{1, 2, 1}}, {"compute", "pp"}, {}};
  receiver.ops.push_back(
      {"receive", 1, Time(), CommType::kSendRecv, -1, 0, false, Bytes(1000), {}});
  table.programs = {sender, receiver};
  const ReplayResult result = run(op_table_program(table, 3));
  EXPECT_EQ(result.rank_end, (std::vector{Time::us(6), Time::us(7), Time()}));
}

TEST(Replay, JobsSideBySideDoNotMix) {
  std::vector<RankPrograms> jobs;
  jobs.push_back(two_ranks(Time::us(10), Time::us(20)));
  jobs.push_back(two_ranks(Time::us(1), Time::us(1)));
  const ReplayResult result = run(side_by_side(std::move(jobs)));
  EXPECT_EQ(result.rank_end, (std::vector{Time::us(23), Time::us(22), Time::us(4), Time::us(4)}));
}

LayerTable two_layers() {
  LayerTable table;
  table.names = {"a", "b"};
  for (std::int32_t i = 0; i < 2; ++i) {
    Layer layer;
    layer.name = i;
    layer.forward = {Time::us(1), Bytes(1000), CommType::kAllGather, GroupKind::kTp};
    layer.input_grad = {Time::us(2), Bytes(1000), CommType::kReduceScatter, GroupKind::kTp};
    layer.weight_grad = {Time::us(3), Bytes(9000), CommType::kAllReduce, GroupKind::kDp};
    table.layers.push_back(layer);
  }
  return table;
}

TEST(SimaiProgram, WeightGradientsOverlapWithCompute) {
  // N = 4, tp 2, dp 2. One lap of 1000 B takes 1 + 1 us, of 9000 B 9 + 1 us.
  // Forward: 2 * (1 + 2) = 6. Backward of b: ig 2 + 2, wg 3: at 13 its all-reduce starts, to 23.
  // Backward of a: ig 2 + 2, wg 3: 20; its all-reduce follows on the dp stream: 23 to 33.
  const SimaiProgram program = simai_program(two_layers(), {.gpus = 4, .tp = 2}, {.strict = false});
  const ReplayResult result = run(program.ranks);
  EXPECT_EQ(result.end, Time::us(33));
  const LayerOps& last = program.layers[1];
  EXPECT_EQ(result.first_rank[static_cast<std::size_t>(last.weight_grad.comm)].end, Time::us(23));
}

TEST(SimaiProgram, StrictHasOneQueueAndTicks) {
  // 4096 B at least in the forward column: a lap takes 4.096 + 1 us; three ticks of 1 ns a layer.
  // Forward 2 * (1 + 5.096) = 12.192; b: 2 + 2 + 3 = 19.192, its all-reduce runs 10 us to 29.192.
  // a's ig ends at 21.192, but its reduce-scatter waits in the queue until 29.192 and ends at
  // 31.192; wg 3: 34.192; all-reduce to 44.192. Ticks: forward 2, b 1 before its all-reduce, a 1.
  const SimaiProgram program = simai_program(two_layers(), {.gpus = 4, .tp = 2}, {.strict = true});
  const ReplayResult result = run(program.ranks);
  EXPECT_EQ(result.end, Time::us(44) + Time::ns(192 + 4));
}

TEST(SimaiProgram, StrictTakesABroadcastForNothing) {
  LayerTable table = two_layers();
  for (Layer& layer : table.layers) {
    layer.forward.comm = CommType::kBroadcast;
  }
  EXPECT_GE(simai_program(table, {.gpus = 4, .tp = 2}, {}).layers[0].forward.comm, 0);
  EXPECT_EQ(simai_program(table, {.gpus = 4, .tp = 2}, {.strict = true}).layers[0].forward.comm,
            -1);
}

TEST(SimaiProgram, RecomputesFromTheKeptLayer) {
  LayerTable table = two_layers();
  for (Layer& layer : table.layers) {
    layer.forward.comm = layer.input_grad.comm = layer.weight_grad.comm = CommType::kNone;
  }
  EXPECT_EQ(run(simai_program(table, {.gpus = 1}, {}).ranks).end, Time::us(12));
  table.checkpoints = {0};
  table.checkpoint_initiates = {1};  // forward of layer 0 once more before layer 1's backward
  EXPECT_EQ(run(simai_program(table, {.gpus = 1}, {}).ranks).end, Time::us(13));
}

/// Four layers of nothing but forwards: 1 us, then an all-gather of 9 + 1 us.
LayerTable four_forwards() {
  LayerTable table;
  table.names = {"a"};
  table.layers.resize(4);
  for (Layer& layer : table.layers) {
    layer.forward = {Time::us(1), Bytes(9000), CommType::kAllGather, GroupKind::kTp};
  }
  return table;
}

TEST(SimaiProgram, StrictHeedsTheFirstCheckpointAlone) {
  LayerTable table = four_forwards();
  table.checkpoints = {1, 0, 2};
  table.checkpoint_initiates = {2, 3};
  const auto runs = [&](bool strict) {
    std::vector<std::size_t> again;
    for (const LayerOps& layer :
         simai_program(table, {.gpus = 2, .tp = 2}, {.strict = strict}).layers) {
      again.push_back(layer.recomputed.size());
    }
    return again;
  };
  EXPECT_EQ(runs(true), (std::vector<std::size_t>{0, 1, 0, 0}));
  EXPECT_EQ(runs(false), (std::vector<std::size_t>{0, 0, 1, 0}));
}

TEST(LayerReport, CountsRecomputedForwards) {
  LayerTable table = four_forwards();
  table.checkpoints = {0};
  table.checkpoint_initiates = {2};  // layers 0 and 1 run again
  const SimaiProgram program = simai_program(table, {.gpus = 2, .tp = 2}, {});
  const ReplayResult replayed = run(program.ranks);
  StepResult result;
  report_layers(table, program.layers, program.ranks.program(0), program.ranks.families,
                replayed.first_rank, std::nullopt, result);
  EXPECT_EQ(result.layers[1].forward.compute, Time::us(2));
  EXPECT_EQ(result.layers[2].forward.compute, Time::us(1));
  EXPECT_EQ(result.layers[1].forward.comm, Time::us(2 * (9 + 1)));
  EXPECT_EQ(result.layers[1].forward.exposed, Time::us(2 * (9 + 1)));
  EXPECT_EQ(result.layers[1].forward.bytes, Bytes(9000));
  EXPECT_EQ(result.exposed_by_group[static_cast<std::size_t>(GroupKind::kTp)],
            Time::us(6 * (9 + 1)));
}

TEST(LayerReport, StrictTakesGroupsFromTheHeader) {
  const LayerTable table = two_layers();
  const SimaiProgram program = simai_program(table, {.gpus = 8, .tp = 2}, {.strict = true});
  const ReplayResult replayed = run(program.ranks);
  const auto sizes = [&](const std::optional<Parallelism>& header) {
    StepResult result;
    report_layers(table, program.layers, program.ranks.program(0), program.ranks.families,
                  replayed.first_rank, header, result);
    const LayerResult& layer = result.layers[0];
    return std::vector{layer.forward.group_size, layer.input_grad.group_size,
                       layer.weight_grad.group_size};
  };
  EXPECT_EQ(sizes(std::nullopt), (std::vector{2, 2, 4}));
  EXPECT_EQ(sizes(Parallelism{.gpus = 8, .tp = 2, .pp = 2}), (std::vector{2, 2, 2}));
  EXPECT_EQ(sizes(Parallelism{.gpus = 4, .tp = 2}), (std::vector{2, 2, 2}));
}

TEST(ParallelGroups, AreThoseOfTheOrderTpDpPp) {
  const auto families = parallel_groups({.gpus = 16, .tp = 2, .ep = 2, .pp = 2});
  const auto members = [&](GroupKind kind, std::int32_t rank) {
    const CommFamily& family = families[static_cast<std::size_t>(kind)];
    return family.groups()[static_cast<std::size_t>(family.group_of(rank))];
  };
  EXPECT_EQ(members(GroupKind::kTp, 5), (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(members(GroupKind::kDp, 5), (std::vector<std::int32_t>{1, 3, 5, 7}));
  EXPECT_EQ(members(GroupKind::kEp, 5), (std::vector<std::int32_t>{5, 7}));
  EXPECT_EQ(members(GroupKind::kDpEp, 5), (std::vector<std::int32_t>{1, 5}));
  EXPECT_EQ(members(GroupKind::kPp, 5), (std::vector<std::int32_t>{5, 13}));
}

TEST(ParallelGroups, ExpertsSpreadOverTpRanksWhereTheyMust) {
  // D = 2 is no multiple of ep 4, but the 8 ranks of the job are.
  const auto families = parallel_groups({.gpus = 8, .tp = 4, .ep = 4});
  const CommFamily& ep = families[static_cast<std::size_t>(GroupKind::kEp)];
  const CommFamily& dp_ep = families[static_cast<std::size_t>(GroupKind::kDpEp)];
  EXPECT_EQ(ep.groups()[1], (std::vector<std::int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(dp_ep.groups()[1], (std::vector<std::int32_t>{1, 5}));
}

TEST(ParallelGroups, WrongShapesNameTheRule) {
  EXPECT_THROW(parallel_groups({.gpus = 10, .tp = 4}), Error);
  try {
    parallel_groups({.gpus = 16, .tp = 2, .ep = 3});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ep 3 divides neither the 8 data-parallel ranks"));
    EXPECT_THAT(error.what(), HasSubstr("ep 2 would fit"));
  }
}

/// The first transfer of a collective is `late`; notes when each starts, by slot.
class OvertakingNetwork : public testing::FakeNetwork {
 public:
  explicit OvertakingNetwork(bool queues, Time late = Time::us(1000))
      : queues_(queues), late_(late) {}
  using NetworkEngine::start;
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override {
    starts_.resize(std::max<std::size_t>(starts_.size(), tag + 1));
    starts_[tag] = when;
    FakeNetwork::start(connection, bytes, tag == 0 ? when + late_ : when, tag);
  }
  bool has_queues() const override { return queues_; }
  Time started(std::size_t slot) const { return starts_[slot]; }

 private:
  bool queues_;
  Time late_;
  std::vector<Time> starts_;
};

/// SimAI's all-reduce of 9 bytes as a ring of three ranks.
void replay_ring_of_three(OvertakingNetwork& network, const ReplayOptions& options) {
  const CollectiveRequest request{
      .op = CommType::kAllReduce, .bytes = Bytes(9), .flavour = CollectiveFlavour::kSimai};
  const auto schedule = std::make_shared<const Schedule>(
      algorithm_named("ring", request.op).build(request, {3, {0, 1, 2}}));
  ASSERT_TRUE(schedule->separate_flows);
  RankPrograms work;
  work.families.emplace_back(GroupKind::kWorld, std::vector<std::vector<std::int32_t>>{{0, 1, 2}},
                             3);
  Program program({StreamOrder::kProgram});
  program.add(collective(request.op, 9, 0), {});
  program.finish();
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0, 0};
  const Topology topology = gpus(3);
  replay(
      work, topology.gpus(), topology, network,
      [&](CommType, Bytes, const GroupShape&) { return schedule; }, options);
}

// SimAI's ring of three ranks, steps of 3 bytes: 1003 ns each. Rank 0's first transfer to rank 1
// comes after 1,001,003 ns; its second one sets off at 1003 ns, when that of rank 2 has come, and
// is there at 2006 ns. Rank 1 passes it on (flow 7: step 2, rank 1) when it has set off its own
// second transfer (flow 4), for which it has waited until 1,001,003 ns; with queues it takes what
// overtook 10 ns later.
TEST(Replay, WhatOvertakesWaitsForTheStepBefore) {
  for (const bool queues : {false, true}) {
    OvertakingNetwork network(queues);
    replay_ring_of_three(network, {.send_latency = Time(), .receive_latency = Time::ns(10)});
    EXPECT_EQ(network.started(3), Time::ns(1003));
    EXPECT_EQ(network.started(4), Time::ns(1'001'003));
    EXPECT_EQ(network.started(7), Time::ns(queues ? 1'001'013 : 1'001'003));
  }
}

// The same with a first transfer that comes at 2003 ns, 3 ns before the second: rank 1 sets off its
// own second transfer (slot 4) at 2003 ns and has a receive for what follows 10 ns later. With
// memory accesses of 30 ns, which the second and third transfers of each rank cost, the second
// comes at 1003 + 30 + 1003 ns; rank 1's own sets off at 2033 ns, the receive is there at 2043 ns,
// and what it passes on then waits 30 ns more.
TEST(Replay, WhatComesBeforeItsReceiveWaitsForIt) {
  for (const bool memory : {false, true}) {
    OvertakingNetwork network(true, Time::ns(1000));
    replay_ring_of_three(network, {.send_latency = Time(),
                                   .reduce_latency = memory ? Time::ns(30) : Time(),
                                   .receive_latency = Time::ns(10)});
    EXPECT_EQ(network.started(3), Time::ns(memory ? 1033 : 1003));
    EXPECT_EQ(network.started(4), Time::ns(memory ? 2033 : 2003));
    EXPECT_EQ(network.started(7), Time::ns(memory ? 2073 : 2013));
  }
}

// SimAI's count of three ranks' all-reduce on one channel, 4 steps: each rank's first transfer of a
// cycle of three is free and turns the rank's switch on, so that the second and third cost 30 ns;
// the fourth begins a cycle and is free again. With two channels the second one's first transfer
// turns it off at once.
TEST(Replay, MemoryTimeByCycles) {
  for (const std::int32_t channels : {1, 2}) {
    const CollectiveRequest request{.op = CommType::kAllReduce,
                                    .bytes = Bytes(9 * channels),
                                    .channels = channels,
                                    .flavour = CollectiveFlavour::kSimai};
    const auto schedule = std::make_shared<const Schedule>(
        algorithm_named("ring", request.op).build(request, {3, {0, 1, 2}}));
    RankPrograms work;
    work.families.emplace_back(GroupKind::kWorld, std::vector<std::vector<std::int32_t>>{{0, 1, 2}},
                               3);
    Program program({StreamOrder::kProgram});
    program.add(collective(request.op, request.bytes.count(), 0), {});
    program.finish();
    work.programs.push_back(std::move(program));
    work.program_of_rank = {0, 0, 0};
    const Topology topology = gpus(3);
    OvertakingNetwork network(true, Time());
    replay(work, topology.gpus(), topology, network,
           [&](CommType, Bytes, const GroupShape&) { return schedule; },
           {.send_latency = Time(), .reduce_latency = Time::ns(30)});
    const auto lane = static_cast<std::size_t>(3 * channels);
    const std::int64_t cost = channels == 1 ? 30 : 0;
    EXPECT_EQ(network.started(0), Time());
    EXPECT_EQ(network.started(lane), Time::ns(1003 + cost));
    EXPECT_EQ(network.started(2 * lane), Time::ns(2006 + 2 * cost));
    EXPECT_EQ(network.started(3 * lane), Time::ns(3009 + 2 * cost));
  }
}

}  // namespace
}  // namespace lockstep::replay_test
