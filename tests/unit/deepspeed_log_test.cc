// The reader of DeepSpeed's communication log, whose lines AICB's console has, too.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/small_logs.h"
#include "trace/log_reader.h"

namespace lockstep::deepspeed_log_test {
namespace {

using testing::corpus;

TEST(DeepSpeedLog, LinesAndSummaries) {
  const PhysicalLog log = corpus("deepspeed_comm/run.log");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].bytes, Bytes(10004));  // 9.77 * 1024
  EXPECT_DOUBLE_EQ(log.comms[0].algbw_Bps, 0.08e9 / 8);
  EXPECT_EQ(log.warnings.entries().at(0).text, "lines of communications without a time or a size");
}

TEST(DeepSpeedLog, Summary) {
  const PhysicalLog log = read_log(
      "[Rank 0] Comm. Op            Message Size        Count               Total Latency(ms)   "
      "Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n"
      "broadcast\n"
      "                    2.0 KB              146                 11.12               0.08     "
      "           0.43                0.41\n"
      "reduce_scatter_tensor\n"
      "                    678.86 MB           40                  602.29              9.69     "
      "           1468.06             1406.00\n",
      "summary.log");
  EXPECT_EQ(log.format, "deepspeed-comm");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kBroadcast);
  EXPECT_EQ(log.comms[0].bytes, Bytes(2048));
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 0.08e-3);
  EXPECT_EQ(log.comms[1].op, CommType::kReduceScatter);
  EXPECT_DOUBLE_EQ(log.comms[1].busbw_Bps, 1406e9 / 8);
}

TEST(DeepSpeedLog, SummaryBehindTags) {
  for (const std::string tag : {"0: ", "worker-0: ", "[1,0]<stdout>:"}) {
    const PhysicalLog log = read_log(
        tag + "Comm. Op   Message Size   Count   Total Latency(ms)   Avg Latency(ms)   " +
            "tput_avg (Gbps)   busbw_avg (Gbps)\n" + tag + "all_reduce\n" + tag +
            "                    256.0 MB        40       200.0     5.00      858.99    805.31\n",
        "summary.log");
    ASSERT_EQ(log.comms.size(), 1U) << tag;
    EXPECT_EQ(log.comms[0].bytes, Bytes(256 << 20)) << tag;
    EXPECT_EQ(log.comms[0].op, CommType::kAllReduce) << tag;
  }
}

TEST(DeepSpeedLog, NegativeSizesAreNone) {
  const std::string line = "comm op: all_reduce | time (ms): 5.00 | msg size: ";
  const PhysicalLog log =
      read_log(line + "-2.0 GB | algbw (Gbps): 0.00\n" + line + "2.0 GB\n", "ds.log");
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_EQ(log.warnings.entries().at(0).text, "lines of communications without a time or a size");
}

// Barriers have no size, and with debug=True an operation has its caller.
TEST(DeepSpeedLog, SummaryWithBarriersAndCallers) {
  const PhysicalLog log = read_log(
      "Comm. Op   Message Size   Count   Total Latency(ms)   Avg Latency(ms)   tput_avg (Gbps)   "
      "busbw_avg (Gbps)\n"
      "barrier\n"
      "                    0B              4        0.50      0.12      0.00      0.00\n"
      "all_reduce | [Caller Func: forward]\n"
      "                    256.0 MB        40       200.0     5.00      858.99    805.31\n",
      "summary.log");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kBarrier);
  EXPECT_EQ(log.comms[1].op, CommType::kAllReduce);
  EXPECT_EQ(log.comms[1].bytes, Bytes(256 << 20));
  EXPECT_EQ(log.settings.at(0).ranks, 16);  // 805.31 / 858.99 is 15 / 16
  EXPECT_TRUE(log.settings[0].ranks_guessed);
}

// Of 4 ranks; the releases that do not double the all-reduce's size have 1.5 in place of 0.75.
TEST(DeepSpeedLog, BandwidthsTellTheRanks) {
  for (const char* rates : {"161.0 | busbw (Gbps): 120.75", "80.5 | busbw (Gbps): 120.75"}) {
    const PhysicalLog log = read_log(
        std::string("comm op: all_reduce | time (ms): 2.02 | msg size: 4.0 MB | algbw (Gbps): ") +
            rates +
            "\ncomm op: all_gather | time (ms): 0.01 | msg size: 9.77 KB | algbw (Gbps): 0.08\n",
        "ds.log");
    EXPECT_EQ(log.settings.at(0).ranks, 4) << rates;
    EXPECT_EQ(log.comms.at(1).ranks, 4) << rates;
    EXPECT_EQ(log.comms[1].bytes, Bytes(4 * 10004)) << rates;
    EXPECT_EQ(log.warnings.total(), 0);
  }
  // Where they do not, that is told.
  const PhysicalLog none =
      read_log("comm op: all_reduce | time (ms): 2.02 | msg size: 4.0 MB\n", "ds.log");
  EXPECT_EQ(none.settings.at(0).ranks, 0);
  EXPECT_EQ(none.warnings.total(), 1);
}

// AICB's lines have groups, whose size is that of their bandwidths.
TEST(DeepSpeedLog, AicbConsole) {
  const PhysicalLog log = read_log(
      "[RANK 0] comm op: CommType.all_reduce | comm group: CommGroup.tp_group | time (ms): 1.00 | "
      "msg size: 128.0 MB | algbw (GB): 125.0 | busbw (GB): 218.75\n"
      "[RANK 0] comm op: CommType.all_gather | comm group: CommGroup.dp_group | time (ms): 2.00 | "
      "msg size: 128.0 MB | algbw (GB): 62.5 | busbw (GB): 31.25\n"
      "[RANK 0] comm op: CommType.isend | comm group: CommGroup.pp_group | time (ms): 2.00 | "
      "msg size: 128.0 MB | algbw (GB): 62.5 | busbw (GB): 62.5\n",
      "aicb.log");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[0].ranks, 8);
  EXPECT_DOUBLE_EQ(log.comms[0].algbw_Bps, 125.0 * (1 << 30));
  EXPECT_EQ(log.comms[1].ranks, 2);
  EXPECT_EQ(log.comms[1].bytes, Bytes(128 << 20));  // of the whole
  EXPECT_EQ(members_of(log, log.comms[1].group), (std::vector<std::int32_t>{0, 8}));
  EXPECT_EQ(log.settings.at(0).ranks, 16);
  EXPECT_EQ(log.warnings.entries().at(0).text,
            "groups whose size their bandwidths do not tell are taken to be the job");
}

// It notes what a rank gives to an all-gather, and bandwidths of the whole.
TEST(DeepSpeedLog, GathersAreWhole) {
  const PhysicalLog log = read_log(
      "[2024-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: "
      "all_gather_into_tensor | time (ms): 5.00 | msg size: 64.0 MB | algbw (Gbps): 1717.99  | "
      "busbw (Gbps): 1610.61\n",
      "ds.log");
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_EQ(log.comms[0].bytes, Bytes(1 << 30));
  EXPECT_EQ(log.comms[0].ranks, 16);
}

}  // namespace
}  // namespace lockstep::deepspeed_log_test
