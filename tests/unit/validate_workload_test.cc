#include <functional>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "workloads/validate.h"

namespace lockstep::validate_workload_test {
namespace {

std::string error_of(const Workload& workload) {
  try {
    validate(workload);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Workload one_layer() {
  LayerTable table;
  table.names = {"a"};
  table.layers.resize(1);
  Workload workload;
  workload.jobs.resize(1);
  workload.jobs[0].work = table;
  return workload;
}

/// one_layer() after a change.
std::string error_after(const std::function<void(WorkloadJob&, LayerTable&)>& change) {
  Workload workload = one_layer();
  change(workload.jobs[0], std::get<LayerTable>(workload.jobs[0].work));
  return error_of(workload);
}

TEST(ValidateLayers, AcceptsTheLeast) { EXPECT_EQ(error_of(one_layer()), "no error"); }

TEST(ValidateLayers, NamesThePlace) {
  EXPECT_EQ(error_of(Workload()), "jobs: there are no jobs\n  expected: at least one job");
  EXPECT_EQ(error_after([](WorkloadJob& job, LayerTable&) { job.name = ""; }),
            "jobs[0].name: the name is empty\n  expected: a name of its own");
  EXPECT_EQ(error_after([](WorkloadJob& job, LayerTable&) { job.parallel.pp = 0; }),
            "jobs[0].parallel.pp: 0 is out of range\n"
            "  expected: a whole number from 1 to 16777216");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) { table.layers.clear(); }),
            "jobs[0].layer_table.layers: the job has no layers\n  expected: at least one layer");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) { table.layers[0].name = 1; }),
            "jobs[0].layer_table.layers[0].name: the name is not in the table of names");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) {
              table.layers[0].input_grad.bytes = Bytes(-1);
            }),
            "jobs[0].layer_table.layers[0].input_grad: a time or a size is negative");
  EXPECT_EQ(
      error_after([](WorkloadJob&, LayerTable& table) { table.layers[0].update = Time::ps(-1); }),
      "jobs[0].layer_table.layers[0].update_ps: a time is negative");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) {
              table.layers[0].forward.comm = CommType::kSendRecv;
            }),
            "jobs[0].layer_table.layers[0].forward: a layer cannot send to one rank\n"
            "  expected: a collective\n  hint: give the work rank by rank, as an op_table");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) {
              table.pp_comm_bytes = std::numeric_limits<double>::quiet_NaN();
            }),
            "jobs[0].layer_table.pp_comm_bytes: not a size\n  expected: a number of 0 or more");
  EXPECT_EQ(error_after([](WorkloadJob&, LayerTable& table) { table.layer_policies = {"DATA"}; }),
            "jobs[0].layer_table.layers: 1 layers have a policy of their own\n"
            "  expected: one for each layer under HYBRID_CUSTOMIZED, none else");
}

Op message(bool send, std::int32_t peer, std::int64_t bytes) {
  return {.comm = CommType::kSendRecv, .peer = peer, .send = send, .bytes = Bytes(bytes)};
}

/// Ranks 0, 1 share a program and ranks 2, 3 another; each of the first sends to each of the
/// others.
Workload fan_out() {
  OpTable table;
  table.programs = {{{{0, 2, 1}}, {"s"}, {message(true, 2, 8), message(true, 3, 8)}},
                    {{{2, 4, 1}}, {"s"}, {message(false, 0, 8), message(false, 1, 8)}}};
  Workload workload;
  workload.jobs.resize(1);
  workload.jobs[0].parallel.gpus = 5;
  workload.jobs[0].work = table;
  return workload;
}

std::string error_after(const std::function<void(OpTable&)>& change) {
  Workload workload = fan_out();
  change(std::get<OpTable>(workload.jobs[0].work));
  return error_of(workload);
}

TEST(ValidateOps, SharedProgramsMayExchangeMessages) { EXPECT_EQ(error_of(fan_out()), "no error"); }

TEST(ValidateOps, FindsThePairThatDisagreesInSharedPrograms) {
  const std::string expected = "\n  expected: sends and receives that agree for each pair of ranks";
  // Nobody sends to rank 3, which yet receives from both.
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops.pop_back(); }),
            "jobs[0].op_table.programs: rank 0 sends 0 messages (0 bytes) to rank 3, which "
            "receives 1 (8 bytes) from it" +
                expected);
  // Rank 1 sends to both, but they only receive from rank 0.
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[1].ops.pop_back(); }),
            "jobs[0].op_table.programs: rank 1 sends 1 messages (8 bytes) to rank 2, which "
            "receives 0 (0 bytes) from it" +
                expected);
  // Rank 0 sends one more to rank 3 alone; ranks 2 and 3 both wait for it.
  EXPECT_EQ(error_after([](OpTable& table) {
              table.programs[0].ops.push_back(message(true, 3, 1));
              table.programs[1].ops.push_back(message(false, 0, 1));
            }),
            "jobs[0].op_table.programs: rank 0 sends 1 messages (8 bytes) to rank 2, which "
            "receives 2 (9 bytes) from it" +
                expected);
}

TEST(ValidateOps, PeersNeedAProgram) {
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops[1].peer = 4; }),
            "jobs[0].op_table.programs[0].ops[1].send_to: rank 4 has no program: it neither sends "
            "nor receives\n  expected: a rank with another program");
}

// They name the ranks; a trace of such a table would have rows of ranks that there are not.
TEST(ValidateOps, ItsParallelismDividesItsGpus) {
  Workload workload = fan_out();
  workload.jobs[0].parallel.tp = 3;
  EXPECT_EQ(error_of(workload),
            fmt::format("jobs[0].parallel: {} GPUs are no multiple of tp 3 x cp 1 x pp 1\n"
                        "  expected: numbers whose product divides gpus",
                        workload.jobs[0].parallel.gpus));
}

TEST(ValidateOps, OperationsAreOfOneKind) {
  const std::string expected =
      "jobs[0].op_table.programs[0].ops[0]: the operation is of more than one kind\n"
      "  expected: a computation, a collective over a group, or a send or receive with a peer";
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops[0].compute = Time::ps(1); }),
            expected);
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops[0].group = 0; }),
            "jobs[0].op_table.programs[0].ops[0].group: there is no such family of groups");
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops[0].comm = CommType::kNone; }),
            expected);
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ops[0].bytes = Bytes(-1); }),
            "jobs[0].op_table.programs[0].ops[0]: a time or a size is negative\n"
            "  expected: a computation, a collective over a group, or a send or receive with a "
            "peer");
}

TEST(ValidateOps, MembersThatNeverEnterAreFound) {
  EXPECT_EQ(error_after([](OpTable& table) {
              table.groups = {{"all", {{0, 1, 4}}}};
              table.programs[0].ops.push_back({.comm = CommType::kBarrier, .group = 0});
            }),
            "jobs[0].op_table.groups[0].members[0]: the ranks of a group disagree: its collective "
            "number 0 is barrier of 0 bytes on rank 0 and nothing on rank 4\n"
            "  expected: the same collectives in the same order on all ranks of a group");
}

TEST(ValidateOps, RangesOfRanks) {
  for (const RankRange bad : {RankRange{-1, 1, 1}, RankRange{2, 2, 1}, RankRange{0, 6, 1},
                              RankRange{0, 1, 0}, RankRange{4, 0, -1}}) {
    EXPECT_EQ(error_after([&](OpTable& table) { table.programs[0].ranks = {bad}; }),
              "jobs[0].op_table.programs[0].ranks[0]: not a range of ranks\n"
              "  expected: 0 <= first < end <= 5, stride >= 1");
  }
  EXPECT_EQ(error_after([](OpTable& table) { table.programs[0].ranks = {}; }),
            "jobs[0].op_table.programs[0].ranks: no rank runs this program");
}

}  // namespace
}  // namespace lockstep::validate_workload_test
