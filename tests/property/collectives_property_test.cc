#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/check.h"
#include "tests/support/shapes.h"

namespace lockstep::collectives_property_test {
namespace {

using testing::in_servers_of;

/// What must cross the network as distinct data: all-to-all keeps each rank's own piece at home.
std::int64_t expected_data(const CollectiveRequest& request, const Schedule& schedule) {
  const std::int64_t bytes = request.bytes.count(), n = schedule.ranks;
  switch (request.op) {
    case CommType::kAllToAll:
      return (n - 1) * bytes;
    case CommType::kSendRecv:
      return bytes * schedule.chunks;
    case CommType::kBarrier:
      return 1;
    default:
      return bytes;
  }
}

void expect_right(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request,
                  const GroupShape& shape) {
  const Schedule schedule = algorithm.build(request, shape);
  const std::string what = std::string(algorithm.name) + " " + std::string(name_of(request.op)) +
                           " of " + std::to_string(request.bytes.count()) + " bytes on " +
                           std::to_string(shape.ranks) + " ranks";
  ASSERT_EQ(schedule.op, request.op) << what;
  ASSERT_EQ(schedule.ranks, shape.ranks) << what;
  if (request.bytes == Bytes(0) && request.op != CommType::kBarrier) {
    ASSERT_TRUE(schedule.slots.empty()) << what;
    return;
  }
  ASSERT_EQ(check_schedule(schedule), "") << what;
  std::set<std::int32_t> seen;
  for (const Slot& slot : schedule.slots) {
    for (std::int32_t k = 0; k < slot.count; ++k) {
      for (std::int32_t i = 0; i < slot.run; ++i) {
        seen.insert(schedule.chunk(slot, k, i));
      }
    }
  }
  std::int64_t data = 0;
  for (const std::int32_t chunk : seen) {
    data += schedule.chunk_size(chunk).count();
  }
  // Each chunk is rounded up, by less than a byte; SimAI rounds down.
  const std::int64_t expected = expected_data(request, schedule);
  const auto rounding = static_cast<std::int64_t>(seen.size());
  if (request.flavour == CollectiveFlavour::kSimai) {
    ASSERT_LE(data, expected) << what;
    ASSERT_GT(data, expected - rounding) << what;
  } else {
    ASSERT_GE(data, expected) << what;
    ASSERT_LT(data, expected + rounding) << what;
  }
  ASSERT_EQ(algorithm.build(request, shape), schedule) << what;
}

/// Every algorithm, operation and flavour, with some sizes, channels and roots.
void expect_all_right(const GroupShape& shape, bool thorough) {
  const std::int64_t n = shape.ranks;
  const std::vector<std::int64_t> sizes =
      thorough ? std::vector<std::int64_t>{0, 1, n - 1, 7919, (1 << 20) + 1, 4 << 20}
               : std::vector<std::int64_t>{(1 << 20) + 1};
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    for (const CommType op : algorithm->ops) {
      for (const std::int64_t bytes : sizes) {
        for (const auto flavour : {CollectiveFlavour::kDefault, CollectiveFlavour::kSimai}) {
          for (const std::int32_t channels : thorough ? std::vector{0, 3} : std::vector{0}) {
            CollectiveRequest request;
            request.op = op;
            request.bytes = Bytes(bytes);
            request.flavour = flavour;
            request.channels = channels;
            request.slices = channels > 0 ? 2 : 1;
            request.mesh = bytes == 7919;
            request.root = op == CommType::kBroadcast || op == CommType::kReduce
                               ? static_cast<std::int32_t>(bytes % n)
                               : 0;
            expect_right(*algorithm, request, shape);
          }
        }
      }
    }
  }
}

TEST(CollectivesProperty, SmallGroupsOfEveryShape) {
  for (std::int32_t n = 2; n <= 9; ++n) {
    for (const std::int32_t per_server : {1, 2, 3, 8}) {
      expect_all_right(in_servers_of(per_server, n), true);
    }
  }
}

TEST(CollectivesProperty, LargerGroups) {
  for (const std::int32_t n : {12, 16, 24}) {
    for (const std::int32_t per_server : {1, 4, 8}) {
      expect_all_right(in_servers_of(per_server, n), false);
    }
  }
}

TEST(CollectivesProperty, SixtyFourRanks) { expect_all_right(in_servers_of(8, 64), false); }

TEST(CollectivesProperty, AnyPlacement) {
  Rng rng(1, "collectives/placement");
  for (int i = 0; i < 30; ++i) {
    std::vector<std::int32_t> servers(2 + rng.below(10));
    for (std::int32_t& server : servers) {
      server = static_cast<std::int32_t>(rng.below(4));
    }
    expect_all_right(group_shape(servers), false);
  }
}

TEST(CollectivesProperty, TableIsSortedAndNamesAreUnique) {
  std::string last;
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    EXPECT_LT(last, algorithm->name);
    EXPECT_FALSE(algorithm->summary.empty());
    EXPECT_FALSE(algorithm->ops.empty());
    last = algorithm->name;
  }
}

}  // namespace
}  // namespace lockstep::collectives_property_test
