#include <gtest/gtest.h>

#include "analysis/whatif/evidence.h"

namespace lockstep::whatif::whatif_evidence_test {
namespace {

// One stage of three data-parallel ranks, two forward operations in each of two steps. Ranks 0 and
// 1 take 1 s each time; rank 2 takes 2 s, and 5 s once, in step 11.
OpTable table() {
  OpTable table;
  table.nodes.resize(2);
  for (OpNode& node : table.nodes) {
    node.type = TraceOp::kForwardCompute;
  }
  table.nodes[1].seq = 1;
  table.steps = {10, 11};
  table.dp = 3;
  table.stages = 1;
  table.ranks = {0, 8, 16};
  table.start_s.assign(12, 0);
  table.duration_s = {1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 5};
  return table;
}

TEST(WorkerEvidence, SetsAWorkerBesideItsPeers) {
  const Json workers = worker_evidence(table(), {1.0, 1.0, 2.0});
  ASSERT_EQ(workers.size(), 3U);
  const Json& slow = workers[2];
  EXPECT_EQ(slow["rank"], 16);
  EXPECT_EQ(slow["stage"], 0);
  EXPECT_EQ(slow["dp_rank"], 2);
  EXPECT_EQ(slow["slowdown"], 2.0);
  ASSERT_EQ(slow["ops"].size(), 1U);
  const Json& op = slow["ops"][0];
  EXPECT_EQ(op["type"], "forward-compute");
  EXPECT_EQ(op["count"], 4);
  EXPECT_EQ(op["median_s"], 2.0);
  EXPECT_EQ(op["peers_median_s"], 1.0);
  EXPECT_EQ(op["longest_s"], 5.0);
  EXPECT_EQ(op["longest_step"], 11);
  EXPECT_FALSE(slow.contains("column"));
}

}  // namespace
}  // namespace lockstep::whatif::whatif_evidence_test
