// The reader of NDTimeline's traces.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/small_logs.h"
#include "trace/log_reader.h"

namespace lockstep::ndtimeline_log_test {
namespace {

using testing::corpus;

// Steps of 3, 4 and 1 s that count from the job's beginning, as the last one shows.
TEST(NdtimelineLog, OfAnotherZero) {
  const auto read = [](const std::string& rows) {
    return read_log("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n" + rows,
                    "x.csv");
  };
  const PhysicalLog log = read(
      "0,0,0,1,forward-compute,0,1,0,0,0,0\n0,0,0,1,backward-compute,1.5,1.5,0,0,0,0\n"
      "0,0,0,2,forward-compute,3,4,0,0,0,0\n0,0,0,3,forward-compute,7,1,0,0,0,0\n");
  ASSERT_EQ(log.steps.size(), 3U);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 3);
  EXPECT_DOUBLE_EQ(log.steps[1].time_s, 4);
  EXPECT_DOUBLE_EQ(log.steps[2].time_s, 1);
  EXPECT_DOUBLE_EQ(log.ops.at(1).begin_s, 1.5);
  EXPECT_DOUBLE_EQ(log.ops.at(2).begin_s, 0);
  ASSERT_EQ(log.warnings.total(), 1);
  EXPECT_EQ(log.warnings.entries()[0].text,
            "start_ts counts from another zero than the step's first operation, which is taken "
            "instead");
  EXPECT_EQ(
      testing::error_of([&] {
        read(
            "0,0,0,1,forward-compute,1700000000,1,0,0,0,0\n"
            "0,0,0,1,forward-compute,1700000001,1,0,0,0,0\n");
      }),
      "x.csv: start_ts: step 1 begins at 1.7e+09 s, beside which its 1 s are lost in 32 bits\n"
      "  expected: seconds since the step's first operation");
}

TEST(NdtimelineLog, RepairsNameNoFile) {
  const PhysicalLog log = read_log(
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
      "0,0,0.0,1,forward-compute,0,1,0,0,0,0\n",
      "x.csv");
  ASSERT_EQ(log.warnings.total(), 1);  // those who print it say of which file it is
  EXPECT_EQ(log.warnings.entries()[0].text, "1 whole numbers read from floating-point ones");
}

TEST(NdtimelineLog, OfTwoAndOfStages) {
  const PhysicalLog trace = corpus("ndtimeline/two.csv");
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.ops[1].op, CommType::kReduceScatter);
  EXPECT_EQ(trace.groups.at(static_cast<std::size_t>(trace.ops[1].group)).substr(0, 8), "dp stage");
  EXPECT_EQ(trace.steps.size(), 1U);
  EXPECT_LT(trace.ops[1].waited_s, 0);  // not told
  const PhysicalLog peers = read_log(
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc,alone\n"
      "0,0,0,1,forward-compute,0,1,0,0,0,0,-1\n"
      "0,0,0,1,forward-tp-comm,1,0.75,0,0,0,0,0.5\n",
      "x.csv");
  ASSERT_EQ(peers.ops.size(), 2U);
  EXPECT_LT(peers.ops[0].waited_s, 0);
  EXPECT_DOUBLE_EQ(peers.ops[1].waited_s, 0.25);
  const PhysicalLog stages = corpus("ndtimeline/stages.csv");
  ASSERT_EQ(stages.ops.size(), 10U);
  EXPECT_EQ(stages.ops[2].kind, OpKind::kCommunication);  // forward-tp-comm
  EXPECT_EQ(stages.ops[6].kind, OpKind::kCompute);
  EXPECT_EQ(stages.ops[4].occurrence, stages.ops[8].occurrence);  // sends and what comes of them
  EXPECT_EQ(stages.ops[5].occurrence, stages.ops[9].occurrence);
  EXPECT_NE(stages.ops[4].occurrence, stages.ops[5].occurrence);
  EXPECT_GE(stages.ops[4].occurrence, 0);
}

}  // namespace
}  // namespace lockstep::ndtimeline_log_test
