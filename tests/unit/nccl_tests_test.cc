// The reader of nccl-tests' tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"

namespace lockstep::nccl_tests_test {
namespace {

PhysicalLog sample() {
  return read_logs(LOCKSTEP_SOURCE_DIR "/tests/data/logs/two-tables.txt").at(0);
}

TEST(NcclTests, TwoTablesWithTheLogOfNcclBetween) {
  const PhysicalLog log = sample();
  EXPECT_EQ(log.format, "nccl-tests");
  ASSERT_EQ(log.settings.size(), 2U);
  ASSERT_EQ(log.comms.size(), 8U);          // three sizes and one, out of place and in place
  const CommRow& broken = log.comms.at(2);  // its line was cut in two by NCCL's
  EXPECT_EQ(broken.bytes, Bytes(2097152));
  EXPECT_DOUBLE_EQ(broken.time_s, 75e-6);
  EXPECT_DOUBLE_EQ(broken.busbw_Bps, 41.94e9);
  EXPECT_FALSE(broken.in_place);
  EXPECT_EQ(broken.op, CommType::kAllReduce);
  EXPECT_EQ(broken.ranks, 4);
  EXPECT_EQ(log.comms.back().op, CommType::kSendRecv);
  EXPECT_EQ(log.comms.back().ranks, 2);
  EXPECT_TRUE(log.comms.back().in_place);
  EXPECT_EQ(log.warnings.total(), 0);
}

TEST(NcclTests, TheRunIsDescribed) {
  const CommSetting setting = sample().settings.at(0);
  EXPECT_EQ(setting.ranks, 4);
  EXPECT_EQ(setting.servers, 2);
  EXPECT_EQ(setting.gpu_type, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(setting.nccl_version, "2.29.2");
  EXPECT_EQ(setting.transport, "IB");
  EXPECT_EQ(setting.nics, (std::vector<std::string>{"mlx5_0:1/IB", "mlx5_1:1/IB"}));
  EXPECT_EQ(setting.rings, (std::vector<std::string>{"0 1 2 3", "0 3 2 1"}));
  EXPECT_EQ(setting.trees, 2);
  EXPECT_EQ(setting.channels, 2);
  EXPECT_EQ(setting.p2p_channels_per_peer, 2);
  EXPECT_EQ(setting.gdr, true);
  EXPECT_EQ(setting.env.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(setting.env.at("NCCL_IB_HCA"), "mlx5");
  EXPECT_EQ(setting.dtype, "float");
}

TEST(NcclTests, OldColumnsTagsAndACutOffRow) {
  const PhysicalLog log =
      read_logs(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/nccl_tests/old.txt").at(0);
  ASSERT_EQ(log.comms.size(), 5U);
  EXPECT_EQ(log.settings.at(0).nccl_version, "2.8.4");
  EXPECT_DOUBLE_EQ(log.comms.at(4).time_s, 199.9e-6);
  EXPECT_EQ(log.warnings.entries().at(0).text, "a row of a table is cut off");
}

TEST(NcclTests, NamesTellWhatTheLogDoesNot) {
  CommSetting setting;
  EXPECT_EQ(take_hints("job_reduce-scatter_N10_G8.log", setting), CommType::kReduceScatter);
  EXPECT_EQ(setting.ranks, 80);
  EXPECT_EQ(setting.servers, 10);
  CommSetting alps;
  take_hints("job-n-00016-N-0004.txt", alps);
  EXPECT_EQ(alps.ranks, 16);
  EXPECT_EQ(alps.servers, 4);
  EXPECT_EQ(nccl_version_of_number(2804), "2.8.4");
  EXPECT_EQ(nccl_version_of_number(22902), "2.29.2");
}

TEST(NcclTests, NoTableIsAnError) {
  EXPECT_THROW(read_log("# nThread 1 nGpus 1\n", "x.txt"), Error);
  EXPECT_THROW(read_log("", "x.txt"), Error);
  EXPECT_THROW(read_log("nothing that is known\n", "x.txt"), Error);
}

}  // namespace
}  // namespace lockstep::nccl_tests_test
