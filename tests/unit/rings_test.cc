#include "simulator/collectives/rings.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/shapes.h"

namespace lockstep::rings_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::in_servers_of;
using ::testing::SizeIs;

CollectiveRequest request(CollectiveFlavour flavour, std::int32_t channels = 0) {
  CollectiveRequest r;
  r.op = CommType::kAllReduce;
  r.flavour = flavour;
  r.channels = channels;
  return r;
}

TEST(GroupShapeTest, NumbersServersByFirstAppearance) {
  const std::int32_t servers[] = {7, 3, 7, 100, 3};
  EXPECT_THAT(group_shape(servers).server, ElementsAre(0, 1, 0, 2, 1));
  EXPECT_EQ(group_shape(servers).ranks, 5);
}

// Two servers of four. SimAI: channel c runs c, c+1, c+2, c+3 (mod 4) on each server.
TEST(Rings, SimaiRotatesEveryServerAlike) {
  const auto rings = make_rings(request(CollectiveFlavour::kSimai), in_servers_of(4, 8));
  ASSERT_THAT(rings, SizeIs(4));
  EXPECT_THAT(rings[0], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(rings[1], ElementsAre(1, 2, 3, 0, 5, 6, 7, 4));
  EXPECT_THAT(rings[2], ElementsAre(2, 3, 0, 1, 6, 7, 4, 5));
  EXPECT_THAT(rings[3], ElementsAre(3, 0, 1, 2, 7, 4, 5, 6));
}

// The same in the default flavour: server 0 is left at c-1, server 1 entered there and left at c.
TEST(Rings, DefaultStaysOnTheRail) {
  const auto rings = make_rings(request(CollectiveFlavour::kDefault), in_servers_of(4, 8));
  ASSERT_THAT(rings, SizeIs(4));
  EXPECT_THAT(rings[0], ElementsAre(0, 1, 2, 3, 7, 5, 6, 4));
  EXPECT_THAT(rings[1], ElementsAre(1, 2, 3, 0, 4, 6, 7, 5));
  EXPECT_THAT(rings[2], ElementsAre(2, 3, 0, 1, 5, 7, 4, 6));
  EXPECT_THAT(rings[3], ElementsAre(3, 0, 1, 2, 6, 4, 5, 7));
}

// Three servers of four: steps -1, -1, +2. Channel 0 leaves at 3, then 2, then 0.
TEST(Rings, OddNumberOfServersCloses) {
  const auto rings = make_rings(request(CollectiveFlavour::kDefault), in_servers_of(4, 12));
  EXPECT_THAT(rings[0], ElementsAre(0, 1, 2, 3, 7, 4, 5, 6, 10, 9, 11, 8));
}

TEST(Rings, OneRankAServerIsOneChannel) {
  EXPECT_THAT(make_rings(request(CollectiveFlavour::kSimai), in_servers_of(1, 4)),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(make_rings(request(CollectiveFlavour::kDefault), in_servers_of(1, 3)),
              ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Rings, UnevenServersUseTheFewestRanks) {
  // Servers of 3 and 2: two channels, rotated by c mod 3 and c mod 2.
  const auto rings = make_rings(request(CollectiveFlavour::kDefault), in_servers_of(3, 5));
  EXPECT_THAT(rings, ElementsAre(ElementsAre(0, 1, 2, 3, 4), ElementsAre(1, 2, 0, 4, 3)));
}

// A group of 12 on servers of 8: two blocks of six, though the servers hold eight and four. One of
// six that sits on two servers is one block.
TEST(Rings, SimaiCutsTensorGroupsIntoEqualBlocks) {
  const GroupShape twelve = simai_tensor_shape(in_servers_of(8, 12), 8);
  EXPECT_THAT(twelve.server, ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1));
  const std::int32_t straddling[] = {0, 0, 1, 1, 1, 1};
  EXPECT_THAT(simai_tensor_shape(group_shape(straddling), 8).server, Each(0));
  EXPECT_EQ(simai_tensor_shape(in_servers_of(8, 16), 8), in_servers_of(8, 16));
  EXPECT_EQ(simai_tensor_shape(in_servers_of(8, 9), 8), in_servers_of(8, 9)) << "no equal blocks";
}

TEST(Rings, InterleavedRanksAreGroupedByServer) {
  const std::int32_t servers[] = {0, 1, 0, 1};
  EXPECT_THAT(make_rings(request(CollectiveFlavour::kSimai), group_shape(servers)),
              ElementsAre(ElementsAre(0, 2, 1, 3), ElementsAre(2, 0, 3, 1)));
}

TEST(Rings, MoreChannelsRepeatTheOrders) {
  const auto rings = make_rings(request(CollectiveFlavour::kDefault, 5), in_servers_of(2, 4));
  ASSERT_THAT(rings, SizeIs(5));
  EXPECT_EQ(rings[2], rings[0]);
  EXPECT_EQ(rings[4], rings[0]);
  EXPECT_EQ(rings[3], rings[1]);
}

TEST(Rings, ChannelsOutOfRangeAreAnError) {
  for (const std::int32_t channels : {-1, kMaxChannels + 1}) {
    EXPECT_THROW(channel_count(request(CollectiveFlavour::kDefault, channels), in_servers_of(8, 8)),
                 Error);
  }
}

// Every channel visits every rank once; in the default flavour every change of server keeps the
// local rank (but for one a channel with two ranks in each of an odd number of servers), and the
// channels leave a server at different ranks.
TEST(Rings, RailsForManyShapes) {
  for (std::int32_t per_server = 1; per_server <= 8; ++per_server) {
    for (std::int32_t servers = 2; servers <= 9; ++servers) {
      const std::int32_t n = per_server * servers;
      const auto rings =
          make_rings(request(CollectiveFlavour::kDefault), in_servers_of(per_server, n));
      ASSERT_EQ(rings.size(), static_cast<std::size_t>(per_server));
      std::set<std::pair<std::int32_t, std::int32_t>> senders;  // over the network
      for (const auto& ring : rings) {
        ASSERT_EQ(std::set<std::int32_t>(ring.begin(), ring.end()).size(), ring.size());
        ASSERT_EQ(ring.size(), static_cast<std::size_t>(n));
        int changes = 0;
        for (std::size_t j = 0; j < ring.size(); ++j) {
          const std::int32_t from = ring[j], to = ring[(j + 1) % ring.size()];
          if (from / per_server != to / per_server) {
            changes += from % per_server != to % per_server ? 1 : 0;
            EXPECT_TRUE(senders.insert({from / per_server, from % per_server}).second);
          }
        }
        EXPECT_EQ(changes, per_server == 2 && servers % 2 == 1 ? 1 : 0)
            << per_server << " ranks on each of " << servers;
      }
    }
  }
}

TEST(Mesh, EveryLinkIsUsedAlike) {
  CollectiveRequest request;
  request.mesh = true;
  for (const std::int32_t n : {3, 4, 5, 7}) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> uses;
    for (const auto& ring : make_rings(request, in_servers_of(8, n))) {
      for (std::size_t i = 0; i < ring.size(); ++i) {
        ++uses[{ring[i], ring[(i + 1) % ring.size()]}];
      }
    }
    EXPECT_EQ(std::ssize(uses), n * (n - 1));
    for (const auto& [link, count] : uses) {
      EXPECT_EQ(count, n == 4 ? 2 : 1);
    }
  }
  EXPECT_EQ(make_rings(request, in_servers_of(4, 8)).size(), 4U);  // servers: by rails
}

TEST(PartSize, IsRoundedUpOrDropsTheRest) {
  // 11 bytes in 4 parts: 3 each, SimAI 2 each.
  EXPECT_EQ(part_size(Bytes(11), 4, CollectiveFlavour::kDefault), Bytes(3));
  EXPECT_EQ(part_size(Bytes(12), 4, CollectiveFlavour::kDefault), Bytes(3));
  EXPECT_EQ(part_size(Bytes(11), 4, CollectiveFlavour::kSimai), Bytes(2));
}

}  // namespace
}  // namespace lockstep::rings_test
