#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/groups.h"
#include "generator/exact/stages.h"

namespace lockstep::exact_groups_property_test {
namespace {

/// A random shape whose dense and expert cuts both divide the world.
RankLayout random_layout(Rng& rng) {
  RankLayout layout;
  layout.tp = rng.between(1, 4);
  layout.cp = rng.between(1, 3);
  layout.pp = rng.between(1, 4);
  layout.ep = rng.between(1, 6);
  layout.etp = rng.between(1, 3);
  const std::int64_t unit = std::lcm(layout.tp * layout.cp, layout.ep * layout.etp);
  layout.gpus = unit * layout.pp * rng.between(1, 3);
  std::vector<std::string> order{"tp", "cp", "ep", "dp"};
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[rng.below(i)]);
  }
  layout.order = order[0] + "-" + order[1] + "-" + order[2] + "-" + order[3] + "-pp";
  return layout;
}

std::size_t expected_size(const RankLayout& layout, RankGroup kind) {
  switch (kind) {
    case RankGroup::kTp:
      return static_cast<std::size_t>(layout.tp);
    case RankGroup::kCp:
      return static_cast<std::size_t>(layout.cp);
    case RankGroup::kDp:
      return static_cast<std::size_t>(layout.dp());
    case RankGroup::kDpCp:
      return static_cast<std::size_t>(layout.dp() * layout.cp);
    case RankGroup::kPp:
      return static_cast<std::size_t>(layout.pp);
    case RankGroup::kModel:
      return static_cast<std::size_t>(layout.tp * layout.pp);
    case RankGroup::kEp:
      return static_cast<std::size_t>(layout.ep);
    case RankGroup::kExpertTp:
      return static_cast<std::size_t>(layout.etp);
    case RankGroup::kExpertDp:
      return static_cast<std::size_t>(layout.expert_dp());
    case RankGroup::kExpertModel:
      return static_cast<std::size_t>(layout.etp * layout.ep * layout.pp);
    case RankGroup::kTpDpCp:
      return static_cast<std::size_t>(layout.gpus / layout.pp);
    case RankGroup::kWorld:
      break;
  }
  return static_cast<std::size_t>(layout.gpus);
}

TEST(ExactGroupsProperty, EveryRankInExactlyOneGroupOfEachKind) {
  Rng rng(1, "exact groups");
  for (int round = 0; round < 300; ++round) {
    const RankLayout layout = random_layout(rng);
    ASSERT_NO_THROW(check_layout(layout));
    for (std::size_t k = 0; k < kRankGroupCount; ++k) {
      const auto kind = static_cast<RankGroup>(k);
      std::vector<int> seen(static_cast<std::size_t>(layout.gpus), 0);
      for (const auto& members : groups_of(layout, kind)) {
        ASSERT_EQ(members.size(), expected_size(layout, kind)) << name_of(kind);
        for (const std::int32_t rank : members) {
          ++seen[static_cast<std::size_t>(rank)];
        }
      }
      ASSERT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; }))
          << name_of(kind) << " of " << layout.order;
    }
  }
}

/// A rank's tp, cp, dp and pp groups meet in that rank alone, and so do the expert groups.
TEST(ExactGroupsProperty, GroupsOfOneCutMeetInOneRank) {
  Rng rng(2, "exact groups");
  for (int round = 0; round < 100; ++round) {
    const RankLayout layout = random_layout(rng);
    const auto meet = [&](std::initializer_list<RankGroup> kinds) {
      std::vector<std::vector<std::size_t>> key(static_cast<std::size_t>(layout.gpus));
      for (const RankGroup kind : kinds) {
        const auto groups = groups_of(layout, kind);
        for (const auto& members : groups) {
          for (std::size_t place = 0; place < members.size(); ++place) {
            key[static_cast<std::size_t>(members[place])].push_back(place);
          }
        }
      }
      std::ranges::sort(key);
      return std::ranges::adjacent_find(key) == key.end();
    };
    ASSERT_TRUE(meet({RankGroup::kTp, RankGroup::kCp, RankGroup::kDp, RankGroup::kPp}));
    ASSERT_TRUE(meet({RankGroup::kExpertTp, RankGroup::kEp, RankGroup::kExpertDp, RankGroup::kPp}));
  }
}

TEST(ExactGroupsProperty, ExpertCommunicationStaysInTheStage) {
  Rng rng(3, "exact groups");
  for (int round = 0; round < 100; ++round) {
    const RankLayout layout = random_layout(rng);
    const std::vector<std::int32_t> stage = stage_of_ranks(layout);
    for (const RankGroup kind : {RankGroup::kTp, RankGroup::kDpCp, RankGroup::kEp,
                                 RankGroup::kExpertTp, RankGroup::kExpertDp, RankGroup::kTpDpCp}) {
      for (const auto& members : groups_of(layout, kind)) {
        for (const std::int32_t rank : members) {
          ASSERT_EQ(stage[static_cast<std::size_t>(rank)],
                    stage[static_cast<std::size_t>(members.front())]);
        }
      }
    }
  }
}

TEST(ExactStagesProperty, EveryLayerOnceInOrderAndBalanced) {
  Rng rng(4, "exact stages");
  for (int round = 0; round < 500; ++round) {
    StageCut cut;
    cut.pp = rng.between(1, 9);
    cut.vpp = rng.between(1, 4);
    cut.layers = rng.between(cut.pp * cut.vpp, 130);
    if (cut.layers < cut.pp * cut.vpp) {
      continue;
    }
    const auto stages = cut_into_stages(cut);
    std::int64_t next = 0, low = cut.layers, high = 0;
    for (std::int64_t v = 0; v < cut.pp * cut.vpp; ++v) {
      const ModelChunk& chunk =
          stages[static_cast<std::size_t>(v % cut.pp)][static_cast<std::size_t>(v / cut.pp)];
      ASSERT_EQ(chunk.first, next);
      ASSERT_EQ(chunk.embedding, v == 0);
      ASSERT_EQ(chunk.head, v + 1 == cut.pp * cut.vpp);
      next += chunk.layers;
      low = std::min(low, chunk.layers);
      high = std::max(high, chunk.layers);
    }
    ASSERT_EQ(next, cut.layers);
    ASSERT_LE(high - low, 1);
    ASSERT_GE(low, 1);
  }
}

}  // namespace
}  // namespace lockstep::exact_groups_property_test
