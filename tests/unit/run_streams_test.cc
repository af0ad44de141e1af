// What runs side by side in `lockstep run`: streams, messages, and ranks that wait for each other.
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "profiler/run/control_transport.h"
#include "profiler/run/meetings.h"
#include "profiler/run/runner.h"

namespace lockstep::run_streams_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const int kPort = 42000 + static_cast<int>(::getpid()) % 20000;

RunChoice choice_of(std::int64_t world, std::int32_t rank) {
  RunChoice choice;
  choice.world = world;
  choice.rank = rank;
  return choice;
}

/// What each rank ends with under the control transport: "done", or its error.
std::vector<std::string> try_plans(int offset, const std::vector<RunPlan>& plans) {
  std::vector<std::string> ends(plans.size());
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        RankPlace place;
        place.rank = static_cast<int>(rank);
        place.world = static_cast<int>(plans.size());
        place.port = kPort + offset;
        Bootstrap bootstrap(place, "key", 60);
        const auto transport = make_control_transport(bootstrap);
        (void)execute(plans[rank], *transport, bootstrap, {3, 1, 60});
        ends[rank] = "done";
      } catch (const Error& error) {
        ends[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  return ends;
}

Op compute_op(std::int64_t us, std::vector<std::int32_t> after) {
  Op op;
  op.name = "compute";
  op.compute = Time::us(us);
  op.after = std::move(after);
  return op;
}

Op message_op(std::int32_t stream, bool send, std::int32_t peer, std::vector<std::int32_t> after) {
  Op op;
  op.name = send ? "out" : "in";
  op.stream = stream;
  op.comm = CommType::kSendRecv;
  op.group = 0;
  op.peer = peer;
  op.send = send;
  op.bytes = Bytes(4096);
  op.after = std::move(after);
  return op;
}

/// Two ranks that exchange messages: each computes, sends what it has to the other and takes what
/// that has. `streams`: of computations, messages out and messages in.
Workload exchange(std::int32_t out, std::int32_t in) {
  OpTable table;
  table.groups = {{"cp", {{0, 1}}}};
  OpProgram& program = table.programs.emplace_back();
  program.ranks = {{0, 2, 1}};
  program.streams = {"compute", "out", "in"};
  program.ops = {compute_op(10, {}), message_op(out, true, 1, {0}), message_op(in, false, -1, {}),
                 compute_op(10, {2})};
  Workload workload;
  workload.jobs.resize(1);
  workload.jobs[0].parallel.gpus = 2;
  workload.jobs[0].work = std::move(table);
  return workload;
}

std::vector<RunPlan> plans_of(const Workload& workload, int world) {
  std::vector<RunPlan> plans;
  for (int rank = 0; rank < world; ++rank) {
    plans.push_back(run_plan(workload, choice_of(world, rank)));
  }
  return plans;
}

TEST(RunStreams, OperationsKeepTheirStreamsAndOrder) {
  const RunPlan plan = run_plan(exchange(1, 2), choice_of(2, 1));
  EXPECT_THAT(plan.streams, ElementsAre("compute", "out", "in"));
  ASSERT_EQ(plan.items.size(), 5U);
  EXPECT_EQ(plan.items[1].stream, 1);
  EXPECT_THAT(plan.items[1].after, ElementsAre(0));
  EXPECT_EQ(plan.items[2].stream, 2);
  EXPECT_THAT(plan.items[2].after, IsEmpty());
  EXPECT_EQ(plan.items[3].stream, 0);
  EXPECT_THAT(plan.items[3].after, ElementsAre(2));
  // The group itself, then a pair for each direction: rank 1 sends by the one and takes by the
  // other.
  ASSERT_EQ(plan.groups.size(), 3U);
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[1].group)].ranks, ElementsAre(1, 0));
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[2].group)].ranks, ElementsAre(0, 1));
}

TEST(RunStreams, WhatIsLeftOutPassesItsOrderOn) {
  Workload workload = exchange(1, 2);
  auto& ops = std::get<OpTable>(workload.jobs[0].work).programs[0].ops;
  ops[0].compute = Time::ns(1);       // of a length that is not known: no item
  ops.push_back(compute_op(10, {}));  // on the stream of 3
  ops[3].compute = Time();            // likewise none: what follows it comes after 2
  const RunPlan plan = run_plan(workload, choice_of(2, 0));
  ASSERT_EQ(plan.items.size(), 4U);
  EXPECT_THAT(plan.items[0].after, IsEmpty());
  EXPECT_THAT(plan.items[2].after, ElementsAre(1));
}

TEST(RunStreams, BothDirectionsAreUnderWayAtOnce) {
  EXPECT_THAT(try_plans(0, plans_of(exchange(1, 2), 2)), ElementsAre("done", "done"));
}

TEST(RunStreams, RanksThatWaitForEachOtherAreFound) {
  // On one stream each rank's message out goes before its message in.
  for (const std::string& end : try_plans(1, plans_of(exchange(1, 1), 2))) {
    EXPECT_THAT(end, HasSubstr("the ranks wait for each other for ever: rank 0 is at item 2 of 5, "
                               "send 4 KiB to rank 1 (out); rank 1 is at item 2 of 5, send 4 KiB "
                               "to rank 0 (out)"));
  }
}

TEST(RunStreams, AMessageWithoutItsOtherEndIsFound) {
  std::vector<RunPlan> plans = plans_of(exchange(1, 2), 2);
  plans[1].items.erase(plans[1].items.begin() + 1);
  plans[1].items[2].after = {1};
  for (const std::string& end : try_plans(2, plans)) {
    EXPECT_THAT(end, HasSubstr("rank 0 is at item 3 of 5, receive 4 KiB from rank 1 (in)"));
  }
}

TEST(RunStreams, OtherTermsAreFound) {
  std::vector<RunPlan> plans = plans_of(exchange(1, 2), 2);
  plans[1].items[2].bytes = 8192;
  for (const std::string& end : try_plans(3, plans)) {
    EXPECT_THAT(
        end,
        HasSubstr("ranks do not do the same: rank 0 is at item 2 of 5, send 4 KiB to rank 1 (out); "
                  "rank 1 is at item 3 of 5, receive 8 KiB from rank 0 (in)"));
  }
}

TEST(RunStreams, MoreItemsThanAreStartedAhead) {
  Workload workload = exchange(1, 2);
  auto& ops = std::get<OpTable>(workload.jobs[0].work).programs[0].ops;
  for (std::int32_t i = 1; i < 150; ++i) {
    const auto first = static_cast<std::int32_t>(ops.size());
    ops.push_back(compute_op(2, {first - 1}));
    ops.push_back(message_op(1, true, 1, {first}));
    ops.push_back(message_op(2, false, -1, {first}));
    ops.push_back(compute_op(2, {first + 2}));
  }
  EXPECT_THAT(try_plans(4, plans_of(workload, 2)), ElementsAre("done", "done"));
}

MeetingCall call_of(const char* name, const char* item) { return {name, 2, "terms", item}; }

TEST(Meetings, AreHeldOnceAllHaveCome) {
  Meetings meetings(2);
  EXPECT_THAT(meetings.come(1, call_of("a", "x")).held, IsEmpty());
  EXPECT_THAT(meetings.come(0, call_of("a", "y")).held, ElementsAre(0, 1));
  EXPECT_EQ(meetings.come(0, call_of("a", "z")).failure, "");  // the next of that name
}

TEST(Meetings, AreForEverOnlyIfNobodyGoesOn) {
  Meetings meetings(3);
  (void)meetings.come(0, call_of("a", "x"));
  (void)meetings.come(1, call_of("a", "x"));  // held: ranks 0 and 1 will go on
  (void)meetings.come(2, call_of("b", "y"));
  EXPECT_EQ(meetings.wait(2, 0), "");
  EXPECT_EQ(meetings.wait(0, 0), "");  // it has not heard of the meeting
  EXPECT_EQ(meetings.wait(1), "");     // at a barrier
  EXPECT_EQ(meetings.wait(0, 1), "the ranks wait for each other for ever: rank 2 is at y");
}

constexpr const char* kHead = "comm_type,comm_group,comm_group_size,msg_size,stage,additional\n";

RunPlan csv_plan(const std::string& rows, std::int32_t rank) {
  Warnings warnings;
  return read_aicb_workload(kHead + rows, "w.csv", {1, 1, 4}, choice_of(4, rank), warnings);
}

TEST(AicbMessages, StagesTakePartInWhatIsTheirs) {
  const std::string rows =
      "all_reduce,all,4,8,f,\n"
      "isend,pp_group,1,4096,f,send_next\n"
      "irecv,pp_group,1,4096,f,recv_prev\n"
      "all_reduce,all,4,8,f,\n";
  std::vector<RunPlan> plans;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    plans.push_back(csv_plan(rows, rank));
  }
  // Nothing goes round the pipeline's end.
  ASSERT_EQ(plans[0].items.size(), 4U);
  EXPECT_TRUE(plans[0].items[1].send);
  EXPECT_EQ(plans[0].items[1].peer, 1);
  ASSERT_EQ(plans[3].items.size(), 4U);
  EXPECT_FALSE(plans[3].items[1].send);
  EXPECT_EQ(plans[3].items[1].peer, 2);
  // The messages between two collectives are side by side.
  ASSERT_EQ(plans[1].items.size(), 5U);
  EXPECT_NE(plans[1].items[1].stream, plans[1].items[2].stream);
  EXPECT_THAT(plans[1].items[2].after, ElementsAre(0));
  EXPECT_THAT(plans[1].items[3].after, UnorderedElementsAre(1, 2));
  EXPECT_THAT(try_plans(5, plans), ElementsAre("done", "done", "done", "done"));
}

std::string refusal(const std::string& rows) {
  try {
    (void)csv_plan(rows, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AicbMessages, NeedTheirOtherEnd) {
  EXPECT_THAT(refusal("isend,pp_group,1,8,f,send_next\nirecv,pp_group,1,8,f,recv_next\n"),
              HasSubstr("w.csv:2: additional: no row is the recv_prev of this send_next"));
  EXPECT_THAT(refusal("irecv,pp_group,1,8,f,recv_prev\n"),
              HasSubstr("w.csv:2: additional: no row is the send_next of this recv_prev"));
  EXPECT_THAT(refusal("isend,pp_group,1,8,f,send_next\nirecv,pp_group,1,16,f,recv_prev\n"),
              HasSubstr("send_next of 8 bytes, but its recv_prev (line 3) is of 16"));
}

TEST(AicbMessages, NameTheirNeighbour) {
  EXPECT_THAT(refusal("isend,pp_group,1,8,f,\n"), HasSubstr("w.csv:2: additional: ''"));
  EXPECT_THAT(refusal("irecv,pp_group,1,8,f,send_next\n"),
              HasSubstr("w.csv:2: additional: 'send_next'"));
}

std::vector<std::int32_t> csv_group(const char* name, const CsvCut& cut, std::int64_t world) {
  Warnings warnings;
  const RunPlan plan =
      read_aicb_workload(std::string(kHead) + "all_reduce," + name + ",None,8,f,\n", "w.csv", cut,
                         choice_of(world, 0), warnings);
  return plan.groups[static_cast<std::size_t>(plan.items[0].group)].ranks;
}

TEST(AicbGroups, ExpertsStrideOverTensorParallelGroups) {
  // tp 2, dp 4, pp 2 of 16: rank = tensor + 2 data + 8 stage, and experts are over two data ranks.
  const CsvCut cut{2, 2, 2};
  EXPECT_THAT(csv_group("ep_group", cut, 16), ElementsAre(0, 2));
  EXPECT_THAT(csv_group("ep_dp_group", cut, 16), ElementsAre(0, 4));
  EXPECT_THAT(csv_group("ep_tp_group", cut, 16), ElementsAre(0, 1, 2, 3));
  // Four groups of experts over two data ranks: the tensor-parallel ranks hold experts too.
  EXPECT_THAT(csv_group("ep_group", {2, 4, 1}, 4), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace lockstep::run_streams_test
