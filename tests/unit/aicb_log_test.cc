// The readers of AICB's comm log and of its analyzer's tables.
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/small_logs.h"
#include "trace/aicb_bandwidth.h"
#include "trace/log_reader.h"

namespace lockstep::aicb_log_test {
namespace {

using testing::corpus;
using testing::name_of;

TEST(AicbLog, CommLog) {
  const PhysicalLog log = corpus("aicb_comm_log/run.csv");
  EXPECT_EQ(log.format, "aicb-comm-log");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(log.comms[0].ranks, 4);
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 0.01);
  // 1 GiB in 10 ms is 100 GiB/s; times 2 * 3 / 4.
  EXPECT_DOUBLE_EQ(log.comms[0].busbw_Bps, 150.0 * (1 << 30));
  // Left out in the file: 16 MiB in 0.5 ms is 31.25 GiB/s, times 7 / 8 is 27.34375.
  EXPECT_DOUBLE_EQ(log.comms[1].algbw_Bps, 31.25 * (1 << 30));
  EXPECT_DOUBLE_EQ(log.comms[1].busbw_Bps, 27.34 * (1 << 30));
  ASSERT_EQ(log.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 1.00025);
  EXPECT_EQ(log.ops.size(), 3U);  // the computation too
  EXPECT_EQ(log.warnings.total(), 1);
}

// The first epoch_end ends the set-up, whose communication is measured, too, but is of no step.
TEST(AicbLog, SetUpIsNoStep) {
  const PhysicalLog log = read_log(
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
      "busbw,count\n"
      "CommType.all_gather,CommGroup.dp_group,8,1048576,init.model_setup,None,None,,50,0,0,1\n"
      "CommType.epoch_end,None,None,0,,None,None,,900,0,0,1\n"
      "CommType.all_gather,CommGroup.tp_group,8,16777216,forward,None,None,,2,7.81,6.84,1\n"
      "CommType.epoch_end,None,None,0,,None,None,,40,0,0,1\n",
      "run_log.csv");
  EXPECT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.ops.size(), 1U);
  ASSERT_EQ(log.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 0.04);
}

// Megatron's order: the ranks of a dp group lie as far apart as a tp group is large.
TEST(AicbLog, GroupsHaveTheirRanks) {
  const PhysicalLog log = read_log(
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
      "busbw,count\n"
      "CommType.all_reduce,CommGroup.tp_group,4,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.all_reduce,CommGroup.dp_group,2,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.isend,CommGroup.pp_group,2,1024,x,8,None,,0.1,1,1,1\n",
      "run_log.csv");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(members_of(log, log.comms[0].group), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(members_of(log, log.comms[1].group), (std::vector<std::int32_t>{0, 4}));
  EXPECT_EQ(members_of(log, log.comms[2].group), (std::vector<std::int32_t>{0, 8}));
  EXPECT_EQ(log.settings.at(0).ranks, 16);
  EXPECT_TRUE(log.settings[0].ranks_guessed);
}

// As pandas writes a column with gaps.
TEST(AicbLog, GroupSizesWithAPoint) {
  const PhysicalLog log = read_log(
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
      "busbw,count\n"
      "CommType.all_reduce,CommGroup.tp_group,4.0,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.all_reduce,CommGroup.dp_group,2,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.all_reduce,CommGroup.dp_group,2.5,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.all_reduce,CommGroup.dp_group,-2,1024,x,None,None,,0.1,1,1,1\n"
      "CommType.all_reduce,CommGroup.ep_group,,1024,x,None,None,,0.1,1,1,1\n",
      "run_log.csv");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[0].ranks, 4);
  EXPECT_EQ(members_of(log, log.comms[1].group), (std::vector<std::int32_t>{0, 4}));
  EXPECT_EQ(log.comms[2].ranks, 1);
  EXPECT_EQ(log.ops.size(), 5U);
  ASSERT_EQ(log.warnings.entries().size(), 1U);
  EXPECT_EQ(log.warnings.entries()[0].text,
            "rows whose comm_group_size is no whole number of 1 or more are not compared");
  EXPECT_EQ(log.warnings.entries()[0].count, 2);
}

TEST(AicbLog, Analyzer) {
  const PhysicalLog log = read_log(
      "\tDetailed comm info for AICB train stage\n--------\n"
      "Comm_Type       Comm_Group   Message_Size Count        Avg_Elapsed_Time ± Std   Avg_BusBw ± "
      "Std\n--------\n"
      "CommType.all_gather CommGroup.dp_group 1.0 GB      12.00            10.00±1.00    "
      "         76.00±9.08        \n"
      "CommType.all_reduce CommGroup.tp_group 16.0 MB      96.00            0.28±0.05            "
      "    83.70±10.77       \n"
      "\n\tDetailed info for AICB iteration time\n",
      "analyze.txt");
  EXPECT_EQ(log.format, "aicb-analyzer");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllGather);
  EXPECT_EQ(log.comms[0].ranks, 4);  // 76 of 100 GiB/s: three quarters
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 10e-3);
  EXPECT_EQ(log.comms[1].ranks, 4);  // 83.7 of 55.8, halved: three quarters
  EXPECT_EQ(members_of(log, log.comms[0].group), (std::vector<std::int32_t>{0, 4, 8, 12}));
  EXPECT_EQ(log.settings.at(0).ranks, 16);
  EXPECT_THROW(
      read_log("comm_type,comm_group,msg_size,busbw_mean,busbw_max\nx,y,4.0 B,1,1\n", "r.csv"),
      Error);
}

TEST(AicbLog, Sizes) {
  EXPECT_EQ(aicb_size("2.25 GB"), 2415919104);
  EXPECT_EQ(aicb_size("0B"), 0);
  EXPECT_EQ(aicb_size("x"), 0);
  EXPECT_EQ(aicb_size("-2.0 GB"), std::nullopt);
  EXPECT_EQ(aicb_size("7 QB"), std::nullopt);
  EXPECT_EQ(aicb_size_text(16777216), "16.0 MB");
  EXPECT_EQ(aicb_size_text(4), "4.0 B");
}

}  // namespace
}  // namespace lockstep::aicb_log_test
