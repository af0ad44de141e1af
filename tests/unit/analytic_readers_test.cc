#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/network/analytic/busbw_yaml.h"
#include "simulator/network/analytic/efficiency_table.h"

namespace lockstep::analytic_readers_test {
namespace {

using ::testing::HasSubstr;

template <class Read>
std::string message(Read read, std::string_view text) {
  try {
    read(text, "file");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string yaml_message(std::string_view text) { return message(parse_busbw_yaml, text); }
std::string csv_message(std::string_view text) { return message(parse_efficiency_csv, text); }

TEST(BusbwYaml, ReadsSimaisLayout) {
  const BusBandwidths b = parse_busbw_yaml(
      "test\r\nTP:\r\nallreduce,: 300\nallgather,: null\n\n# comment\nEP:\n  alltoall: 80 # GB/s\n"
      "PP:\nbusbw: 47.5",
      "file");
  EXPECT_EQ(b.find(GroupKind::kTp, CommType::kAllReduce), parse_bandwidth("300GBps"));
  EXPECT_EQ(b.find(GroupKind::kTp, CommType::kAllGather), std::nullopt);
  EXPECT_EQ(b.find(GroupKind::kDp, CommType::kAllReduce), std::nullopt);
  EXPECT_EQ(b.find(GroupKind::kEp, CommType::kAllToAll), parse_bandwidth("80GBps"));
  EXPECT_EQ(b.find(GroupKind::kDpEp, CommType::kAllToAll), parse_bandwidth("80GBps"));
  EXPECT_EQ(b.find(GroupKind::kWorld, CommType::kAllReduce), std::nullopt);
  EXPECT_EQ(b.find(GroupKind::kTp, CommType::kBroadcast), std::nullopt);
  EXPECT_EQ(b.pipeline, parse_bandwidth("47.5GBps"));
}

TEST(BusbwYaml, NeedsNoTitle) {
  EXPECT_EQ(
      parse_busbw_yaml("TP:\nallreduce: 1\n", "file").find(GroupKind::kTp, CommType::kAllReduce),
      parse_bandwidth("1GBps"));
  EXPECT_THAT(yaml_message("\n"), HasSubstr("no section"));
}

TEST(BusbwYaml, NamesFileLineAndField) {
  EXPECT_THAT(yaml_message("t\nTP:\nallreduce,: 30x\n"),
              AllOf(HasSubstr("file:3"), HasSubstr("TP.allreduce"), HasSubstr("'30x'")));
  EXPECT_THAT(yaml_message("t\nXP:\n"), AllOf(HasSubstr("file:2"), HasSubstr("TP, DP, EP, PP")));
  EXPECT_THAT(yaml_message("t\nDP:\nbusbw: 3\n"), HasSubstr("unknown entry 'busbw'"));
  EXPECT_THAT(yaml_message("t\nPP:\nallreduce: 3\n"), HasSubstr("unknown entry 'allreduce'"));
  EXPECT_THAT(yaml_message("t\nTP:\nallreduce: 3\nDP:\nTP:\nallreduce: 4\n"),
              AllOf(HasSubstr("file:6"), HasSubstr("stands twice")));
  EXPECT_THAT(yaml_message("t\nallreduce: 3\n"), HasSubstr("neither a section nor an entry"));
  EXPECT_THAT(yaml_message("t\nTP:\nallreduce\n"), HasSubstr("neither a section nor an entry"));
  for (const char* value : {"0", "-1", "nan", "inf", "1e99"}) {
    EXPECT_THAT(yaml_message(std::string("t\nTP:\nallreduce: ") + value),
                HasSubstr("is no bandwidth"));
  }
}

TEST(EfficiencyCsv, ReadsSimaisLayout) {
  const EfficiencyTable t = parse_efficiency_csv(
      "Size,1,2,4,8,16,32,64,128,Multi 16,Multi 32,x,y\r\n"
      "1024,0.5, 0.25 ,,,,,,,0.75,ignored,,\r\n\n2048,1,.5",
      "file");
  ASSERT_EQ(t.rows.size(), 2);
  EXPECT_EQ(t.rows[0].size, Bytes(1024));
  EXPECT_EQ(t.rows[0].efficiency[1], 0.25);
  EXPECT_EQ(t.rows[0].efficiency[2], std::nullopt);
  EXPECT_EQ(t.rows[0].efficiency[kMultiColumn], 0.75);
  EXPECT_EQ(t.rows[1].efficiency[1], 0.5);
  EXPECT_EQ(t.rows[1].efficiency[kMultiColumn], std::nullopt);
}

TEST(EfficiencyCsv, NamesFileLineAndColumn) {
  EXPECT_THAT(csv_message(""), HasSubstr("no rows"));
  EXPECT_THAT(csv_message("Size,1\n"), HasSubstr("no rows"));
  EXPECT_THAT(csv_message("Size\nx,1\n"), AllOf(HasSubstr("file:2"), HasSubstr("size")));
  EXPECT_THAT(csv_message("Size\n0,1\n"), HasSubstr("no message size"));
  EXPECT_THAT(csv_message("Size\n9223372036854775808,1\n"), HasSubstr("no message size"));
  EXPECT_THAT(csv_message("Size\n1,1,0\n"),
              AllOf(HasSubstr("file:2"), HasSubstr("efficiency on 2 nodes")));
  EXPECT_THAT(csv_message("Size\n1,,,,,,,,,-1\n"), HasSubstr("Multi 16"));
  EXPECT_THAT(csv_message("Size\n1,nan\n"), HasSubstr("no efficiency"));
  EXPECT_THAT(csv_message("Size\n2,1\n2,1\n"), AllOf(HasSubstr("file:3"), HasSubstr("ascend")));
}

TEST(EfficiencyDir, NamesTheMissingFile) {
  try {
    read_efficiency_dir("/nonexistent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/nic_ratio.csv"));
  }
}

}  // namespace
}  // namespace lockstep::analytic_readers_test
