// The reader of nccl-tests' tables.
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"
#include "trace/nccl_table_op.h"

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

// Before 2.13 a row had a reduction or a root, or neither.
TEST(NcclTests, RowsWithoutAHeaderTellTheirColumns) {
  const auto read = [](const std::string& row, const std::string& name) {
    return read_log(row + "\n", name);
  };
  const PhysicalLog gather = read(
      "    33554432        524288   float    204.7  163.92  153.68  0e+00    118.6  282.92  265.24 "
      " "
      "0e+00",
      "all_gather-n2g8.txt");
  ASSERT_EQ(gather.comms.size(), 2U);
  EXPECT_DOUBLE_EQ(gather.comms[0].time_s, 204.7e-6);
  EXPECT_DOUBLE_EQ(gather.comms[1].time_s, 118.6e-6);
  EXPECT_EQ(gather.comms[1].wrong, 0);
  EXPECT_TRUE(gather.comms[1].in_place);
  const PhysicalLog sum = read(
      "    33554432       8388608   float     sum    881.1   38.08   71.40  0e+00    195.1  171.99 "
      " "
      "322.47  0e+00",
      "all_reduce-n2g8.txt");
  EXPECT_DOUBLE_EQ(sum.comms.at(0).time_s, 881.1e-6);
  EXPECT_DOUBLE_EQ(sum.comms.at(1).busbw_Bps, 322.47e9);
  const PhysicalLog root = read(
      "    33554432       8388608   float       0    200.0  167.77  167.77  0e+00    100.0  335.54 "
      " "
      "335.54  0e+00",
      "broadcast-n2g8.txt");
  EXPECT_DOUBLE_EQ(root.comms.at(0).time_s, 200e-6);
  EXPECT_EQ(root.warnings.total(), 0);
}

constexpr const char* kDevices = R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
# Using devices
)";

// Figures of single iterations stand behind each result.
TEST(NcclTests, ColumnsOfSingleIterationsAreNoResults) {
  const PhysicalLog log = read_log(
      std::string(kDevices) +
          R"(#  Rank  0 Group  0 Pid    100 on      node0 device  0 [0000:0a:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid    100 on      node0 device  1 [0000:0b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%
    67108864      16777216     float     sum      -1   400.00  167.77  167.77       0   200.00   900.00   880.00     4.50   500.00  134.22  134.22       0   480.00   700.00   690.00     5.50
)",
      "run.txt");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 400e-6);
  EXPECT_DOUBLE_EQ(log.comms[1].time_s, 500e-6);
  EXPECT_EQ(log.comms[1].wrong, 0);
  EXPECT_EQ(log.warnings.total(), 0);
}

// NCCL_TESTS_SPLIT: ranks 0 and 2 meet, and 1 and 3.
TEST(NcclTests, SplitCommunicatorsAreTheFirstGroup) {
  const PhysicalLog log = read_log(
      std::string(kDevices) +
          R"(#  Rank  0 Group  0 Pid   1000 on    node0 device  0 [0000:00:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  1 Pid   1001 on    node0 device  1 [0000:01:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   1002 on    node1 device  0 [0000:00:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  1 Pid   1003 on    node1 device  1 [0000:01:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
    67108864      16777216     float     sum      -1   1677.7   40.00   40.00      0   1677.7   40.00   40.00      0
)",
      "run.txt");
  EXPECT_EQ(log.comms.at(0).ranks, 2);
  EXPECT_EQ(log.settings.at(0).servers, 2);
  EXPECT_EQ(log.warnings.total(), 1);
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

// Tables that were kept without the command: the operation follows from their columns, where it
// can.
TEST(NcclTests, TheOperationByTheColumns) {
  const NcclTableRow all_reduce{1 << 20, 1 << 18, "float", "sum", -1, 100e9, 175e9};
  EXPECT_EQ(op_of(all_reduce), CommType::kAllReduce);
  NcclTableRow row = all_reduce;
  row.busbw_Bps = row.algbw_Bps;  // two ranks, or a send/receive
  EXPECT_EQ(op_of(row), CommType::kNone);
  row.elements /= 8;
  EXPECT_EQ(op_of(row), CommType::kReduceScatter);
  row.reduction = "none";  // all-gather or all-to-all
  EXPECT_EQ(op_of(row), CommType::kNone);
  row = all_reduce;
  row.root = 0;
  EXPECT_EQ(op_of(row), CommType::kReduce);
  row.reduction = "none";
  EXPECT_EQ(op_of(row), CommType::kBroadcast);
  row.elements /= 8;  // gather or scatter
  EXPECT_EQ(op_of(row), CommType::kNone);
  row = all_reduce;
  row.type = "bfloat16";  // twice the elements would be all
  EXPECT_EQ(op_of(row), CommType::kReduceScatter);
  row.type = "complex";
  EXPECT_EQ(op_of(row), CommType::kNone);
}

TEST(NcclTests, OldColumnsTagsAndACutOffRow) {
  const PhysicalLog log =
      read_logs(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/nccl_tests/old.txt").at(0);
  ASSERT_EQ(log.comms.size(), 5U);
  EXPECT_EQ(log.settings.at(0).nccl_version, "2.8.4");
  EXPECT_DOUBLE_EQ(log.comms.at(4).time_s, 199.9e-6);
  EXPECT_EQ(log.warnings.entries().at(0).text, "a row of a table is cut off");
}

// A row is printed in three pieces. NCCL's log behind one of them makes its last word a part of its
// own, and takes no result away.
TEST(NcclTests, RowsThatNcclsLogCuts) {
  const std::string info = "node-b:201:211 [0] NCCL INFO Channel 00/0 : 3[1] -> 0[0] via P2P\n";
  const std::string five =
      "#       size         count    type   redop    root     time   algbw   busbw  #wrong     time"
      "   algbw   busbw  #wrong\n";
  const std::string three =
      "#       size         count    type     time   algbw   busbw   error     time   algbw   busbw"
      "   error\n";
  const std::string out = "    75.00   27.96   24.47    0e+00",
                    in = "    74.00   28.34   24.80    0e+00";
  const std::string next =
      "     4194304         131072   float    120.00   34.95   30.58    0e+00"
      "    119.00   35.25   30.84    0e+00\n";
  for (const auto& [header, begin] :
       {std::pair(five, "     2097152   65536   float     sum      -1"),
        std::pair(three, "     2097152   65536   float")}) {
    for (const std::string& row :
         {begin + out + in + "\n", begin + info + info + out + in + "\n",
          begin + out + info + in + "\n", begin + out + in + info,
          begin + info + out + info + info + in + info,
          std::string(begin) + "[2025-05-12 10:11:12] " + info + out + in + "\n"}) {
      const PhysicalLog log = read_log(header + row, "all_gather-n1g8.txt");
      ASSERT_EQ(log.comms.size(), 2U) << header << row;
      EXPECT_EQ(log.comms[0].bytes, Bytes(2097152)) << row;
      EXPECT_DOUBLE_EQ(log.comms[0].time_s, 75e-6) << row;
      EXPECT_FALSE(log.comms[0].in_place) << row;
      EXPECT_DOUBLE_EQ(log.comms[1].busbw_Bps, 24.8e9) << row;
      EXPECT_TRUE(log.comms[1].in_place) << row;
      EXPECT_EQ(log.comms[1].wrong, 0) << row;
      EXPECT_EQ(log.settings.at(0).dtype,
                row.starts_with(begin + info) && header == three ? "" : "float");
      EXPECT_EQ(log.warnings.total(), 0) << row;
    }
  }
  // What never comes is told, and the result before it is kept.
  const PhysicalLog log =
      read_log(three + "     2097152   65536   float" + out + info + next, "all_gather-n1g8.txt");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[0].line, 2);
  EXPECT_EQ(log.comms[1].bytes, Bytes(4194304));
  EXPECT_EQ(log.warnings.entries().at(0).text, "a row of a table is cut off");
}

// nccl-tests -T ends its rows with the time of day.
TEST(NcclTests, RowsWithTimestampsThatNcclsLogCuts) {
  const std::string header =
      "#       size         count    type   redop    root     time   algbw   busbw  #wrong     time"
      "   algbw   busbw  #wrong            timestamp\n";
  const std::string
      begin = "     1048576        262144   float     sum      -1    50.00   20.97   20.97       0",
      rest = "    49.00   21.40   21.40       0  2026-01-02 10:11:12\n";
  for (const std::string& between :
       {std::string(),
        std::string("node-a:1:1 [0] NCCL INFO Channel 00/0 : 3[1] -> 0[0] via P2P\n")}) {
    const PhysicalLog log = read_log(header + begin + between + rest, "all_reduce-n1g2.txt");
    ASSERT_EQ(log.comms.size(), 2U) << between;
    EXPECT_DOUBLE_EQ(log.comms[1].time_s, 49e-6);
    EXPECT_TRUE(log.comms[1].in_place);
    EXPECT_EQ(log.warnings.total(), 0) << between;
  }
}

// A row's last number may stand right before a host's name, which the list of devices knows.
TEST(NcclTests, WrongElementsBeforeAHostsName) {
  const std::string devices =
      "#  Rank  0 Group  0 Pid 1 on node-a device  0 [0x1b] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid 1 on node-a device  1 [0x1c] NVIDIA H100\n";
  const std::string header =
      "#       size         count    type   redop    root     time   algbw   busbw  #wrong\n";
  const std::string
      row = "     1048576        262144   float     sum      -1    50.00   20.97   20.97       9",
      info = "node-a:100:200 [0] NCCL INFO Connected all rings\n";
  for (const char* gap : {"", " "}) {
    const PhysicalLog log = read_log(devices + header + row + gap + info, "all_reduce.txt");
    ASSERT_EQ(log.comms.size(), 1U);
    EXPECT_EQ(log.comms[0].wrong, 9) << '"' << gap << '"';
  }
}

// 1 MiB in 50 us is 20.97 GB/s. A file that ends within a result has no measurement there: neither
// a time without its rates, nor a number that may be the beginning of one.
TEST(NcclTests, AFileThatEndsWithinAResult) {
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time"
      "   algbw   busbw #wrong\n"
      "      524288        131072     float     sum      -1    40.00   13.11   22.94      0    "
      "40.00"
      "   13.11   22.94      0\n";
  const std::string row = "     1048576        262144     float     sum      -1";
  const std::string out = "    50.00   20.97   36.70      0";
  const auto rows_of = [&](const std::string& end, bool cut) {
    const PhysicalLog log = read_log(header + row + end, "all_reduce-n1g8.txt");
    EXPECT_EQ(log.warnings.total(), cut ? 1 : 0) << end;
    if (cut && log.warnings.total() > 0) {
      EXPECT_EQ(log.warnings.entries()[0].text, "a row of a table is cut off") << end;
    }
    for (const CommRow& each : log.comms) {
      EXPECT_DOUBLE_EQ(each.time_s, each.bytes == Bytes(524288) ? 40e-6 : 50e-6) << end;
    }
    return log.comms.size() - 2;
  };
  for (const char* end : {"    5", "    50.00", "    50.00\n", "    50.00   20.9",
                          "    50.00   20.97\n", "    50.00   20.97   36.7"}) {
    EXPECT_EQ(rows_of(end, true), 0U) << end;
    EXPECT_EQ(rows_of(out + end, true), 1U) << end;
  }
  for (const char* end : {"    50.00   20.97   36.70\n", "    50.00   20.97   36.70      0"}) {
    EXPECT_EQ(rows_of(end, false), 1U) << end;
    EXPECT_EQ(rows_of(out + end, false), 2U) << end;
  }
}

// Tables of times alone, such as some collections keep.
TEST(NcclTests, AFileThatEndsWithinATimeOfTimesAlone) {
  const auto rows_of = [](const std::string& end) {
    const PhysicalLog log = read_log(
        "# size type time time\n  1048576 float 50.00 50.00\n  2097152 float 100.00 " + end,
        "all_reduce-n1g8.txt");
    return std::pair(log.comms.size(), log.warnings.total());
  };
  EXPECT_EQ(rows_of("101.00\n"), std::pair(std::size_t{4}, std::int64_t{0}));
  EXPECT_EQ(rows_of("101.00"), std::pair(std::size_t{4}, std::int64_t{0}));
  EXPECT_EQ(rows_of("10"), std::pair(std::size_t{3}, std::int64_t{1}));
}

TEST(NcclTests, AFileThatEndsWithinTheOnlyTime) {
  const auto rows_of = [](const std::string& end) {
    const PhysicalLog log =
        read_log("# size type time\n  1048576 float 50.00\n" + end, "all_reduce-n1g8.txt");
    return std::pair(log.comms.size(), log.warnings.total());
  };
  EXPECT_EQ(rows_of("  2097152 float 100.00"), std::pair(std::size_t{2}, std::int64_t{0}));
  EXPECT_EQ(rows_of("  2097152 float 10"), std::pair(std::size_t{1}, std::int64_t{1}));
  EXPECT_EQ(rows_of("  2097152 float 10\n"), std::pair(std::size_t{2}, std::int64_t{0}));
  EXPECT_EQ(rows_of("  1024 float 10"), std::pair(std::size_t{2}, std::int64_t{0}));
}

// 183.50 of 104.86 GB/s is 1.75: 8 ranks; "18" of it would be less than one.
TEST(NcclTests, AFileThatEndsWithinARateOfATableWithoutWrong) {
  const std::string header =
      "#       size         count      type   redop     time   algbw   busbw\n";
  const std::string row = "     1048576        262144     float     sum    10.00  104.86  183.50\n";
  for (const char* end : {"1", "18", "183", "183.5", "183.50"}) {
    const std::string last = "     2097152        524288     float     sum    19.00  110.38  ";
    const PhysicalLog log = read_log("all_reduce_perf\n" + header + row + last + end, "a.log");
    ASSERT_EQ(log.comms.size(), 2U) << end;
    EXPECT_EQ(log.comms[1].ranks, 8) << end;
    EXPECT_DOUBLE_EQ(log.comms[1].time_s, 19e-6) << end;
    EXPECT_DOUBLE_EQ(log.comms[1].busbw_Bps, 0) << end;
    EXPECT_EQ(log.warnings.total(), 0) << end;
  }
}

TEST(NcclTests, TimesBelowAPicosecondAreNone) {
  const PhysicalLog log = read_log(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    50.00   20.97   36.70      0\n"
      "     2097152        524288     float     sum      -1    1e-300   1.00    1.00       0\n",
      "all_reduce-n1g8.txt");
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_EQ(log.comms[0].bytes, Bytes(1048576));
  ASSERT_EQ(log.warnings.total(), 1);
  EXPECT_EQ(log.warnings.entries()[0].text,
            "collectives of less than a picosecond were passed over");
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

// Two sizes of rccl-tests, out of place only (-O), as other programs and releases lay them out.
constexpr std::string_view kTable =
    "#       size         count    type   redop    root     time   algbw   busbw #wrong     time   "
    "algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " "
    "(GB/s)  (GB/s)\n"
    "     1048576        262144   float     sum      -1    50.00   20.97   36.70      0    49.00   "
    "21.40   37.45    N/A\n"
    "     2097152        524288   float     sum      -1    75.00   27.96   48.93    N/A    74.00   "
    "28.34   49.59      2\n";

PhysicalLog of(const std::string& text) { return read_log(text, "all_reduce.log"); }

TEST(NcclTests, ATableWithoutItsCommand) {
  const PhysicalLog log = read_log(std::string(kTable), "pasted.txt");
  ASSERT_EQ(log.comms.size(), 4U);
  EXPECT_EQ(log.comms.at(0).op, CommType::kAllReduce);
  EXPECT_EQ(log.comms.at(0).ranks, 8);
  EXPECT_EQ(log.warnings.total(), 0);
}

std::string with_each_line(std::string_view text, std::string_view before, std::string_view after) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result.append(before).append(text.substr(0, end)).append(after).append("\n");
    text.remove_prefix(end + 1);
  }
  return result;
}

TEST(NcclTests, WhatLaunchersPutAroundLinesChangesNothing) {
  const std::string run =
      "# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152\n"
      "# Collective test starting: all_reduce_perf\n" +
      std::string(kTable);
  const PhysicalLog plain = of(run);
  ASSERT_EQ(plain.comms.size(), 4U);
  EXPECT_EQ(plain.comms[3].wrong, 2);
  EXPECT_EQ(plain.comms[1].wrong, 0);
  for (const auto& [before, after] : std::initializer_list<std::pair<const char*, const char*>>{
           {"0: ", ""},
           {"0:", ""},
           {" 12: ", ""},
           {"node-7: ", ""},
           {"[1,0]<stdout>:", ""},
           {"[1,0]<stdout>: ", ""},
           {"[pod/nccl-0/main] ", ""},
           {"(worker, pid=71) ", ""},
           {"2025-02-01T10:11:12.131415Z ", ""},
           {"2025-02-01 10:11:12,131 ", ""},
           {"0: 2025-02-01T10:11:12Z [pod/nccl-0] ", ""},
           {"Mon May 12 10:11:12 2025<stdout>:", ""},
           {"Thu May  1 10:11:12 2025[1,0]<stdout>:", ""},
           {"INFO:root:", ""},
           {"WARNING:nccl.run: ", ""},
           {"", "\r"},
           {"", " "},
           {"\x1b[32m", "\x1b[0m"},
           {"\x1b[1;31;40m0: ", "\x1b[K\r"}}) {
    const PhysicalLog log = of(with_each_line(run, before, after));
    ASSERT_EQ(log.comms.size(), 4U) << before;
    EXPECT_EQ(log.settings.at(0).program, "all_reduce_perf") << before;
    EXPECT_EQ(log.warnings.total(), 0) << before;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(log.comms[i].bytes, plain.comms[i].bytes) << before;
      EXPECT_EQ(log.comms[i].time_s, plain.comms[i].time_s) << before;
      EXPECT_EQ(log.comms[i].in_place, plain.comms[i].in_place) << before;
    }
  }
}

// Newer releases have a column that older ones do not; the next may have another.
TEST(NcclTests, ColumnsThatAreNotKnownAreNoResults) {
  const std::string row =
      "     1048576        262144     float     sum      -1    50.00   20.97   36.70      0       "
      "17"
      "    40.00   26.21   45.87      0       17\n";
  const PhysicalLog log =
      of("#       size         count      type   redop    root     time   algbw   busbw #wrong "
         "#bitdiff"
         "     time   algbw   busbw #wrong #bitdiff\n" +
         row);
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_DOUBLE_EQ(log.comms[1].time_s, 40e-6);
  EXPECT_EQ(log.comms[1].wrong, 0);
  EXPECT_EQ(log.warnings.total(), 0);
  // Without the header nobody knows which number is what.
  const PhysicalLog headless = of(row + std::string(kTable));
  EXPECT_EQ(headless.comms.size(), 4U);
  ASSERT_EQ(headless.warnings.total(), 1);
  EXPECT_EQ(headless.warnings.entries()[0].text,
            "rows of more columns than are known of their table were passed over");
  // A sentence with the words of a header is none.
  EXPECT_EQ(of("size of each type over time\n" + std::string(kTable)).comms.size(), 4U);
}

// -O 0 of rccl-tests, and rows without results out of place, with the time of the day behind them.
TEST(NcclTests, ResultsOnlyInPlace) {
  const PhysicalLog rccl =
      of("#                                                              in-place\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
         "     1048576        262144     float     sum      -1    50.00   20.97   36.70      0\n" +
         std::string(kTable));
  ASSERT_EQ(rccl.comms.size(), 5U);
  EXPECT_TRUE(rccl.comms[0].in_place);
  EXPECT_FALSE(rccl.comms[1].in_place);
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong           timestamp\n";
  const std::string begin = "     1048576        262144     float     sum      -1";
  const std::string result = "    50.00   20.97   36.70      0";
  const std::string blank(result.size(), ' ');
  const PhysicalLog times = of(header + begin + blank + result + "  2025-06-30 10:11:12\n" + begin +
                               result + blank + "  2025-06-30 10:11:12\n");
  ASSERT_EQ(times.comms.size(), 2U);
  EXPECT_TRUE(times.comms[0].in_place);
  EXPECT_FALSE(times.comms[1].in_place);
}

TEST(NcclTests, UnitsAreThoseOfTheTable) {
  std::string text(kTable);
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"(us)", "(ms)"}, {"(us)", "(ms)"}, {"(GB/s)", "(MB/s)"}}) {
    text.replace(text.find(from), std::strlen(from), to);
  }
  const PhysicalLog log = of(text);
  EXPECT_DOUBLE_EQ(log.comms.at(0).time_s, 50e-3);
  for (const auto& [unit, rate] : std::initializer_list<std::pair<const char*, double>>{
           {"(Gb/s)", 1e9 / 8}, {"(Gbps)", 1e9 / 8}, {"(GiB/s)", 1073741824.0}, {"(GBps)", 1e9}}) {
    std::string other(kTable);
    while (other.find("(GB/s)") != std::string::npos) {
      other.replace(other.find("(GB/s)"), 6, unit);
    }
    EXPECT_DOUBLE_EQ(of(other).comms.at(0).busbw_Bps, 36.7 * rate) << unit;
  }
  const PhysicalLog both = of(text + std::string(kTable));  // and back
  EXPECT_DOUBLE_EQ(both.comms.at(4).time_s, 50e-6);
  EXPECT_DOUBLE_EQ(both.comms.at(4).busbw_Bps, 36.7e9);
}

TEST(NcclTests, ProgramsAndReleasesOfAllKinds) {
  const auto only = [](const std::string& text) {
    const PhysicalLog log = of(text);
    EXPECT_EQ(log.comms.size(), 1U) << text;
    return log.comms.empty() ? CommRow{} : log.comms.front();
  };
  // Before 2.0: no root, "error". 2.x: root; "#wrong". With -z 1 or -C: CPU times. Right half only.
  const CommRow old = only(
      "#       size         count    type   redop     time   algbw   busbw  error\n"
      "        1024           256   float     sum    33.50    0.03    0.05  0e+00\n");
  EXPECT_DOUBLE_EQ(old.time_s, 33.5e-6);
  const CommRow cpu = only(
      "#       size         count      type   redop    root    cputime   algbw   busbw #wrong\n"
      "        1024           256     float     sum      -1      12.25    0.08    0.15      0\n");
  EXPECT_DOUBLE_EQ(cpu.time_s, 12.25e-6);
  const CommRow without_redop = only(
      "#       size         count    type    root     time   algbw   busbw  #wrong\n"
      "        1024           256   float      -1    20.00    0.05    0.05       0\n");
  EXPECT_DOUBLE_EQ(without_redop.time_s, 20e-6);
  const CommRow fp8 = only(
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
      "        1024          1024  f8e4m3       sum      -1    20.00    0.05    0.05       0\n");
  EXPECT_EQ(fp8.bytes, Bytes(1024));
  const std::string gathers =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576         16384     float    none      -1    50.00   20.97   19.66      0\n";
  const PhysicalLog rccl =
      of("# rccl-tests version 2.12.10\n# RCCL version 2.22.3+hip6.4 HEAD:abc\n"
         "# Collective test starting: alltoallv_perf\n" +
         gathers);
  ASSERT_EQ(rccl.comms.size(), 1U);
  EXPECT_EQ(rccl.comms[0].op, CommType::kAllToAll);
  const PhysicalLog mpi =
      of("$ mpirun -np 16 -N 8 /usr/bin/all_gather_perf_mpi -b 1M -e 2M\n" + gathers);
  EXPECT_EQ(mpi.comms.at(0).op, CommType::kAllGather);
  EXPECT_EQ(mpi.comms[0].ranks, 16);
}

// Sizes of 1.5, 4.5 and 13.5 GiB by a program that counts bytes in 32 bits, at 100 GB/s.
TEST(NcclTests, SizesPast32Bits) {
  const std::string header =
      "#       size         count    type   redop    root     time   algbw   busbw  #wrong\n";
  const PhysicalLog told =
      of(header +
         "  1610612736     402653184   float     sum      -1  16106.1  100.00  175.00       0\n"
         "   536870912    1207959552   float     sum      -1  48318.4  100.00  175.00       0\n"
         "  1610612736    -671088640   float     sum      -1   144955  100.00  175.00       0\n"
         " -2147483648     536870912   float     sum      -1  21474.8  100.00  175.00       0\n");
  ASSERT_EQ(told.comms.size(), 4U);
  EXPECT_EQ(told.comms[0].bytes, Bytes(1610612736));
  EXPECT_EQ(told.comms[1].bytes, Bytes(4831838208));
  EXPECT_EQ(told.comms[2].bytes, Bytes(14495514624));
  EXPECT_EQ(told.comms[3].bytes, Bytes(2147483648));
  ASSERT_EQ(told.warnings.entries().size(), 1U);
  EXPECT_EQ(told.warnings.entries()[0].count, 3);
  // Bandwidths of the wrapped sizes tell nothing. The sizes that follow from the smallest on are of
  // another cycle (-N).
  const PhysicalLog untold =
      of(header +
         "   536870912     134217728   float     sum      -1   5368.7  100.00  175.00       0\n"
         "  1610612736     402653184   float     sum      -1  16106.1  100.00  175.00       0\n"
         "   536870912    1207959552   float     sum      -1  48318.4   11.11   19.44       0\n"
         "  1610612736    -671088640   float     sum      -1   144955   11.11   19.44       0\n"
         " -2147483648     536870912   float     sum      -1  21474.8 -100.00 -175.00       0\n"
         "   536870912     134217728   float     sum      -1   5368.8  100.00  175.00       0\n");
  ASSERT_EQ(untold.comms.size(), 3U);
  EXPECT_EQ(untold.comms[1].bytes, Bytes(1610612736));
  EXPECT_DOUBLE_EQ(untold.comms[2].time_s, 5368.8e-6);
  ASSERT_EQ(untold.warnings.entries().size(), 2U);
  EXPECT_EQ(untold.warnings.entries()[0].count, 2);  // fall
  EXPECT_EQ(untold.warnings.entries()[1].count, 1);  // negative
  // A slower reduction begins again with sizes that 32 bits do not hold, or hold.
  const PhysicalLog next =
      of(header +
         "  8589934592    2147483648   float     sum      -1    85899  100.00  175.00       0\n"
         "  4294967296    1073741824   float     sum      -1   171799   25.00   43.75       0\n"
         "   536870912     134217728   float    prod      -1   171799    3.12    5.47       0\n");
  EXPECT_EQ(next.comms.size(), 3U);
  EXPECT_EQ(next.warnings.total(), 0);
  // Sizes that fall without such times are as they are.
  const PhysicalLog again =
      of(header +
         "   536870912     134217728   float     sum      -1   5368.7  100.00  175.00       0\n"
         "   268435456      67108864   float     sum      -1   5400.0   49.71   86.99       0\n"
         "   536870912     134217728   float     sum      -1   5500.0   97.61  170.82       0\n"
         "  1073741824     268435456   float     sum      -1  10737.4  100.00  175.00       0\n");
  EXPECT_EQ(again.comms.size(), 4U);
  EXPECT_EQ(again.warnings.total(), 0);
}

TEST(NcclTests, NoTableIsAnError) {
  EXPECT_THROW(read_log("# nThread 1 nGpus 1\n", "x.txt"), Error);
  EXPECT_THROW(read_log("", "x.txt"), Error);
  EXPECT_THROW(read_log("nothing that is known\n", "x.txt"), Error);
}

}  // namespace
}  // namespace lockstep::nccl_tests_test
