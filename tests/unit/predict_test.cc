// What a log's words make of predictions: groups, settings of NCCL, releases, flags against logs;
// and why rows are far off.
#include "analysis/compare/predict.h"

#include <gtest/gtest.h>

#include "analysis/compare/nccl_settings.h"

namespace lockstep::compare::predict_test {
namespace {

/// A table of one row: an all-reduce of so many bytes on ranks of servers of eight H100.
PhysicalLog table(std::int32_t ranks, std::int32_t servers, std::int64_t bytes, double us) {
  PhysicalLog log;
  log.names = {"all_reduce_perf"};
  CommSetting setting;
  setting.id = "x";
  setting.gpu_type = "NVIDIA H100 80GB HBM3";
  setting.nccl_version = "2.26.2";
  setting.ranks = ranks;
  setting.servers = servers;
  log.settings = {setting};
  log.comms = {
      {.op = CommType::kAllReduce, .ranks = ranks, .bytes = Bytes(bytes), .time_s = us * 1e-6}};
  return log;
}

std::vector<ComparedRow> rows_of(const PhysicalLog& log, const CompareWishes& wishes = {}) {
  Warnings left_out;
  return predict_rows(log, wishes, left_out);
}

std::string notes_of(const PhysicalLog& log, const CompareWishes& wishes = {}) {
  std::string text;
  for (const std::string& note : table_setting(log.settings.at(0), wishes).notes) {
    text += note + "\n";
  }
  return text;
}

std::string why(const PhysicalLog& log, double limit = 0.15) {
  std::vector<ComparedRow> rows = rows_of(log);
  explain_rows(rows, {}, limit);
  return rows.at(0).why;
}

constexpr std::int64_t kGiB = 1 << 30;

TEST(NcclWays, ListsExclusionsAndOperations) {
  CommSetting setting;
  const auto way = [&](const char* algorithms, const char* protocols = "") {
    setting.env = {{"NCCL_ALGO", algorithms}, {"NCCL_PROTO", protocols}};
    PhysicalLog log = table(8, 1, kGiB, 4000);
    log.settings[0].env = setting.env;
    const NcclChoice choice = rows_of(log).at(0).predicted.choice;
    return std::pair(choice.algorithm, choice.protocol);
  };
  EXPECT_EQ(way("").first, NcclAlgorithm::kNvls);
  EXPECT_EQ(way("^NVLS").first, NcclAlgorithm::kRing);
  EXPECT_EQ(way("^NVLS,Ring").first, NcclAlgorithm::kTree);
  EXPECT_EQ(way("Tree").first, NcclAlgorithm::kTree);
  EXPECT_EQ(way("Ring,Tree").first, NcclAlgorithm::kRing);
  EXPECT_EQ(way("allreduce:tree;broadcast:ring").first, NcclAlgorithm::kTree);
  EXPECT_EQ(way("broadcast:tree").first, NcclAlgorithm::kNvls);
  EXPECT_EQ(way("Banana").first, NcclAlgorithm::kNvls);
  EXPECT_EQ(way("Ring", "LL").second, Protocol::kLl);
  EXPECT_EQ(way("Ring", "^Simple").second, Protocol::kLl128);
}

// A rack's hosts are one server to NCCL, unless it counts them itself or is told not to join them.
TEST(Predict, HostsOfARackAreOneNvlinkDomain) {
  PhysicalLog log = table(64, 16, kGiB, 4000);
  log.settings[0].gpu_type = "NVIDIA GB200";
  const auto servers = [&] { return table_setting(log.settings[0], {}).servers; };
  EXPECT_EQ(servers(), 1);
  EXPECT_NE(notes_of(log).find("16 hosts of 4 GPUs are taken for 1 NVLink domain"),
            std::string::npos);
  log.settings[0].ranks = 144;
  log.settings[0].servers = 36;
  EXPECT_EQ(servers(), 2);
  log.settings[0].env = {{"NCCL_MNNVL_ENABLE", "0"}};
  EXPECT_EQ(servers(), 36);
  log.settings[0].env.clear();
  log.settings[0].servers_by_nccl = true;
  EXPECT_EQ(servers(), 36);
  EXPECT_EQ(table_setting(table(16, 2, kGiB, 4000).settings[0], {}).servers, 2);
}

TEST(Predict, WhatIsLeftOutIsSaid) {
  PhysicalLog log = table(16, 2, kGiB, 4000);
  log.settings[0].env = {{"NCCL_MAX_NCHANNELS", "2"},
                         {"NCCL_P2P_DISABLE", "1"},
                         {"NCCL_SHM_DISABLE", "0"},
                         {"NCCL_ALGO", "Banana"}};
  log.settings[0].transport = "Socket";
  const std::string notes = notes_of(log);
  EXPECT_NE(notes.find("NCCL_MAX_NCHANNELS=2 is not modelled"), std::string::npos);
  EXPECT_NE(notes.find("NCCL_P2P_DISABLE=1 is not modelled"), std::string::npos);
  EXPECT_EQ(notes.find("NCCL_SHM_DISABLE"), std::string::npos);
  EXPECT_NE(notes.find("'banana' is none that is known"), std::string::npos);
  EXPECT_NE(notes.find("NCCL went over TCP"), std::string::npos);
  EXPECT_EQ(notes_of(table(16, 2, kGiB, 4000)), "");
  log.settings[0].env = {{"NCCL_ALGO", "CollnetDirect"}, {"NCCL_COLLNET_ENABLE", "1"}};
  EXPECT_NE(notes_of(log).find("reductions in the network's switches"), std::string::npos);
  EXPECT_NE(notes_of(log).find("NCCL_COLLNET_ENABLE=1"), std::string::npos);
}

// An engine on a topology tells one time: 8 bytes need none of the links', 1 GiB nearly all of it.
TEST(Explain, AnEnginesTimeIsSplitByWhatTheBytesNeed) {
  const auto told = [](std::int64_t bytes, double measured_us, double predicted_us) {
    const PhysicalLog log = table(8, 1, bytes, measured_us);
    std::vector<ComparedRow> rows = rows_of(log);
    rows.at(0).predicted = {.choice = rows.at(0).predicted.choice, .time_us = predicted_us};
    explain_rows(rows, {}, 0.15);
    return rows.at(0).why;
  };
  EXPECT_EQ(told(8, 1, 1.2), "latency-bound: 100 % of the prediction are hops and the start");
  EXPECT_NE(told(kGiB, 15000, 4000).find("bandwidth-bound"), std::string::npos);
}

TEST(Predict, NicsThatNcclSaw) {
  PhysicalLog log = table(16, 2, kGiB, 4000);
  const double all = rows_of(log).at(0).predicted.time_us;
  log.settings[0].nics = {"mlx5_0:1/IB", "mlx5_1:1/IB"};
  // A quarter of the NICs: NVLinks are the narrowest with all of them.
  EXPECT_GT(rows_of(log).at(0).predicted.time_us, 2 * all);
  EXPECT_NE(notes_of(log).find("NCCL saw 2 NICs"), std::string::npos);
}

TEST(Predict, ReleasesBeforeTheOldestAreTakenForIt) {
  PhysicalLog log = table(8, 1, kGiB, 4000);
  log.settings[0].nccl_version = "2.4.8";
  EXPECT_EQ(table_setting(log.settings[0], {}).wishes.version.number, 20800);
  EXPECT_NE(notes_of(log).find("NCCL 2.4.8 is older"), std::string::npos);
  log.settings[0].nccl_version = "2.99.1";
  EXPECT_EQ(table_setting(log.settings[0], {}).wishes.version, NcclVersion());
  EXPECT_NE(notes_of(log).find("NCCL 2.99.1 is newer"), std::string::npos);
}

// A group of a rank of each of four servers goes over NICs, one within a server over NVLink.
TEST(Predict, GroupsAreWhereTheirRanksAre) {
  PhysicalLog log = table(32, 4, 128 << 20, 800);
  log.groups = {"dp [0, 8, 16, 24]", "tp [0, 1, 2, 3]"};
  log.members = {{0, 8, 16, 24}, {0, 1, 2, 3}};
  log.comms[0].ranks = 4;
  log.comms[0].group = 0;
  log.comms.push_back(log.comms[0]);
  log.comms[1].group = 1;
  const std::vector<ComparedRow> rows = rows_of(log);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].task.servers, 4);
  EXPECT_EQ(rows[1].task.servers, 1);
  EXPECT_EQ(rows[0].group_name, log.groups[0]);
  EXPECT_GT(rows[0].predicted.time_us, 4 * rows[1].predicted.time_us);
}

// A message of a stage to the next is between two ranks, however many the group has; sendrecv_perf
// has each rank send to the next.
// Where the log tells no servers, ranks fill whole ones: 61 ranks that were seen, or a world of 12.
TEST(Predict, RanksFillWholeServers) {
  PhysicalLog log = table(61, 0, kGiB, 4000);
  log.groups = {"dp"};
  log.members = {{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60}};
  log.comms[0].ranks = 16;
  log.comms[0].group = 0;
  EXPECT_EQ(rows_of(log).at(0).task.servers, 8);
  log.settings[0].ranks = 12;
  log.members = {{4, 5, 6, 7}};
  log.comms[0].ranks = 4;
  EXPECT_EQ(rows_of(log).at(0).task.servers, 1);
  log.settings[0].servers = 3;  // of four, as the log says
  log.members = {{3, 4, 5, 6}};
  EXPECT_EQ(rows_of(log).at(0).task.servers, 2);
}

TEST(Predict, MessagesOfGroupsAreBetweenTwo) {
  PhysicalLog log = table(32, 4, 128 << 20, 800);
  log.groups = {"pp [0, 8, 16, 24]", "pp [0, 1, 2, 3]"};
  log.members = {{0, 8, 16, 24}, {0, 1, 2, 3}};
  log.comms[0].op = CommType::kSendRecv;
  log.comms.resize(3, log.comms[0]);
  log.comms[0].ranks = log.comms[1].ranks = 4;
  log.comms[0].group = 0;
  log.comms[1].group = 1;
  const std::vector<ComparedRow> rows = rows_of(log);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].task.ranks, 2);
  EXPECT_EQ(rows[0].task.servers, 2);
  EXPECT_EQ(rows[1].task.ranks, 2);
  EXPECT_EQ(rows[1].task.servers, 1);
  EXPECT_EQ(rows[2].task.ranks, 32);
}

TEST(Predict, ALogThatListsItsRanksIsRight) {
  PhysicalLog log = table(8, 1, kGiB, 4000);
  CompareWishes wishes;
  wishes.ranks = 16;
  EXPECT_EQ(rows_of(log, wishes).at(0).task.ranks, 8);
  EXPECT_NE(notes_of(log, wishes).find("--gpus 16: the log lists 8 GPUs"), std::string::npos);
  log.settings[0].ranks_guessed = true;
  EXPECT_EQ(rows_of(log, wishes).at(0).task.ranks, 16);
  EXPECT_NE(notes_of(log, wishes).find("the flag's are taken"), std::string::npos);
  wishes.ranks = 8;
  EXPECT_EQ(notes_of(log, wishes), "");
}

TEST(Predict, GpusWithOtherLinks) {
  PhysicalLog log = table(8, 1, kGiB, 4000);
  const auto nvlink = [&](const char* gpu) {
    log.settings[0].gpu_type = gpu;
    return table_setting(log.settings[0], {}).preset.system.fabric.nvlink.bytes_per_second();
  };
  const double h100 = nvlink("NVIDIA H100 80GB HBM3");
  EXPECT_EQ(nvlink("NVIDIA H100 PCIe"), 0);
  EXPECT_EQ(nvlink("NVIDIA H100 NVL"), 0);
  EXPECT_NEAR(nvlink("NVIDIA H800"), h100 * 8 / 18, 1);
  EXPECT_NE(notes_of(log).find("no rates were measured on such GPUs"), std::string::npos);
  log.settings[0].gpu_type = "NVIDIA GH200 480GB";
  EXPECT_NE(notes_of(log).find("the log has 8 GPUs in a server, preset alps-gh200 4"),
            std::string::npos);
}

TEST(Predict, GatherScatterAndHypercube) {
  PhysicalLog log = table(16, 2, 64 << 20, 1000);
  log.comms[0].op = CommType::kNone;
  std::map<std::string, double> times;
  for (const char* name : {"gather_perf", "scatter_perf", "hypercube_perf"}) {
    log.names = {name};
    const std::vector<ComparedRow> rows = rows_of(log);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(std::string(rows[0].op_name()) + "_perf", name);
    times[name] = rows[0].predicted.time_us;
  }
  // Half of 64 MiB comes to the root over one NIC of 50 GB/s: 671 us.
  EXPECT_GT(times["gather_perf"], 671);
  EXPECT_LT(times["gather_perf"], 1500);
  EXPECT_EQ(times["gather_perf"], times["scatter_perf"]);
  EXPECT_EQ(pattern_in("all_gather_perf"), "");
  CompareWishes wishes;
  wishes.pattern = "gather";
  log.names = {"none"};
  EXPECT_EQ(rows_of(log, wishes).at(0).predicted.time_us, times["gather_perf"]);
}

// 64 KiB over 8 NICs of 50 GB/s need 0.2 us, whatever LL makes of them.
TEST(Explain, TheBoundIsOfBytesAndLinksAlone) {
  EXPECT_EQ(why(table(16, 2, 64 << 10, 12), 0).find("below the bandwidth bound"),
            std::string::npos);
  EXPECT_EQ(why(table(16, 2, kGiB, 2000)).find("below the bandwidth bound"), 0U);
}

TEST(Explain, WrongElementsAreAlwaysTold) {
  PhysicalLog log = table(8, 1, kGiB, rows_of(table(8, 1, kGiB, 1)).at(0).predicted.time_us);
  EXPECT_EQ(why(log), "");
  log.comms[0].wrong = 3;
  EXPECT_EQ(why(log), "suspicious measurement: 3 elements came out wrong");
}

TEST(Explain, OneRanksTimeMayIncludeWaiting) {
  PhysicalLog log = table(8, 1, kGiB, 9000);
  log.comms[0].waits = true;
  EXPECT_EQ(why(log), "the time of one rank: it may include waiting for the others");
}

TEST(Explain, SocketsAreSlow) {
  PhysicalLog log = table(16, 2, kGiB, 90000);
  log.settings[0].transport = "Socket";
  EXPECT_EQ(why(log).find("NCCL went over TCP"), 0U);
}

}  // namespace
}  // namespace lockstep::compare::predict_test
