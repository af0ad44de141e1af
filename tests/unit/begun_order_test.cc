// In which order ranks begin collectives whose newest ones differ.
#include "simulator/replay/begun_order.h"

#include <gtest/gtest.h>

namespace lockstep::begun_order_test {
namespace {

ProgramOp collective(std::int32_t family, std::int32_t sequence) {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.family = family;
  op.sequence = sequence;
  return op;
}

// Ranks 0 and 1 are a group, 2 and 3 another one.
TEST(BegunOrder, PeersFollowTheFirst) {
  RankPrograms work;
  work.families.emplace_back(GroupKind::kDp, std::vector<std::vector<std::int32_t>>{{0, 1}, {2, 3}},
                             4);
  work.families.emplace_back(GroupKind::kTp, std::vector<std::vector<std::int32_t>>{{0, 2}, {1, 3}},
                             4);
  BegunOrder order(work);
  std::vector<BegunOrder::Begun> begun(4);
  order.begin(begun[0], 0, collective(0, 5));
  EXPECT_FALSE(order.may_begin(begun[1], 1, collective(0, 6)));
  EXPECT_TRUE(order.may_begin(begun[1], 1, collective(0, 5)));
  EXPECT_TRUE(order.may_begin(begun[1], 1, collective(1, 6)));  // of another group
  EXPECT_TRUE(order.may_begin(begun[2], 2, collective(0, 6)));
  order.begin(begun[0], 0, collective(0, 6));
  order.begin(begun[1], 1, collective(0, 5));
  EXPECT_FALSE(order.may_begin(begun[1], 1, collective(0, 4)));
  order.begin(begun[1], 1, collective(0, 6));
  order.begin(begun[1], 1, collective(0, 4));  // now it is the first
  EXPECT_FALSE(order.may_begin(begun[0], 0, collective(0, 3)));
}

}  // namespace
}  // namespace lockstep::begun_order_test
