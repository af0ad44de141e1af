#include "planner/job/mixed_space.h"

#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/exact/mixed_job.h"

namespace lockstep::mixed_space_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::int64_t> used(const Division& division, std::size_t types) {
  std::vector<std::int64_t> slots(types);
  for (const PipelineForm& form : division) {
    for (const std::size_t type : form.types) {
      slots[type] += form.pipelines;
    }
  }
  return slots;
}

// Each division uses up all slots of the types it has, and stands once.
TEST(MixedSpace, DivisionsUseUpTheirTypes) {
  const std::vector<Division> all = divisions({3, 2}, 8);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<std::int64_t> slots = used(all[i], 2);
    EXPECT_TRUE(slots[0] == 3 || slots[0] == 0);
    EXPECT_TRUE(slots[1] == 2 || slots[1] == 0);
    EXPECT_GT(slots[0] + slots[1], 0);
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_NE(all[i], all[k]) << i << " and " << k;
    }
  }
  // One type alone: 3 and 2 numbers of pipelines; each its own: 6. Across: one pipeline of 1..3
  // and 1..2 stages, or two of one stage each of both types, in two orders, with what is left as
  // 1, 2, … pipelines: (1,1) leaves (2,1): 2; (2,1) leaves (1,1): 1; (3,1) leaves (0,1): 1;
  // (1,2) leaves (2,0): 2; (2,2), (3,2): 1 each; two leave (1,0): 1. Nine, twice.
  EXPECT_EQ(all.size(), 3U + 2U + 6U + 2U * 9U);
}

TEST(MixedSpace, DepthIsLimited) {
  for (const Division& division : divisions({4, 4}, 3)) {
    for (const PipelineForm& form : division) {
      EXPECT_LE(form.types.size(), 3U);
    }
  }
}

// 12 layers of 1 s on fast, 2 s on slow GPUs, embedding 0.5, head 1: fast takes twice as many.
SplitProblem two_speeds() {
  SplitProblem problem;
  problem.types = {0, 1};
  problem.layer_s = {std::vector<double>(12, 1), std::vector<double>(12, 2)};
  problem.before_s = {0.5, 1};
  problem.after_s = {0.5, 1};
  problem.most_layers = {12, 12};
  return problem;
}

TEST(MixedSpace, LayersFitSpeed) {
  SplitProblem problem = two_speeds();
  // 8 + 0.5 against 4 x 2 + 1: 9; 7 and 5: 11; 9 and 3: 9.5.
  EXPECT_DOUBLE_EQ(least_slowest_s(problem), 9);
  EXPECT_THAT(split_within(problem, 9), ElementsAre(8, 4));
  // A little slower, and the sum is less: the fast one takes all it may.
  EXPECT_THAT(split_within(problem, 9.5), ElementsAre(9, 3));
  EXPECT_THAT(split_within(problem, 8.9), IsEmpty());
  problem.most_layers = {6, 12};
  EXPECT_DOUBLE_EQ(least_slowest_s(problem), 13);
  EXPECT_THAT(stage_times(problem, {6, 6}), ElementsAre(6.5, 13));
}

// Ends: (m - 1) slowest + sum. 10 microbatches on a pipeline of 1 s and one of 3 s a microbatch.
TEST(MixedSpace, ThePipelinesEndTogether) {
  const std::vector<Share> shares = share_out({1, 1}, {1, 3}, {1, 3}, {1, 1}, 10);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_THAT(shares[0], ElementsAre(Pair(1, 8)));  // 8 s against 6 s; 7 and 3 end after 9 s
  EXPECT_THAT(shares[1], ElementsAre(Pair(1, 2)));
}

TEST(MixedSpace, SomePipelinesRunOneLess) {
  const std::vector<Share> shares = share_out({3}, {1}, {4}, {1}, 11);
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_THAT(shares[0], ElementsAre(Pair(2, 4), Pair(1, 3)));
  EXPECT_THAT(share_out({3, 2}, {1, 1}, {1, 1}, {1, 1}, 4), IsEmpty());
}

// Two interleaved pipelines of 2 stages take microbatches by twos, one of one stage by ones. All
// take 1 s a microbatch: 12 make 4 each; 13 leave one more to the last; 15 make 6, 4 and 5.
TEST(MixedSpace, InterleavedPipelinesTakeMicrobatchesByGrains) {
  const auto shares = [](std::int64_t microbatches) {
    return share_out({2, 1}, {1, 1}, {1, 1}, {2, 1}, microbatches);
  };
  EXPECT_THAT(shares(12), ElementsAre(ElementsAre(Pair(2, 4)), ElementsAre(Pair(1, 4))));
  EXPECT_THAT(shares(13), ElementsAre(ElementsAre(Pair(2, 4)), ElementsAre(Pair(1, 5))));
  EXPECT_THAT(shares(15),
              ElementsAre(ElementsAre(Pair(1, 6), Pair(1, 4)), ElementsAre(Pair(1, 5))));
  // By threes alone there is no way to share out 10; 9 there is, and fewer than 6 are too few.
  EXPECT_THAT(share_out({2}, {1}, {1}, {3}, 10), IsEmpty());
  EXPECT_THAT(share_out({2}, {1}, {1}, {3}, 9), ElementsAre(ElementsAre(Pair(1, 6), Pair(1, 3))));
  EXPECT_THAT(share_out({2}, {1}, {1}, {3}, 5), IsEmpty());
  EXPECT_THAT(share_out({1}, {1}, {1}, {96}, 128), IsEmpty());
  EXPECT_THAT(share_out({1}, {1}, {1}, {64}, 128), ElementsAre(ElementsAre(Pair(1, 128))));
}

// Servers of 0-3, 4-7, 12-15, 16-18, 20-23, 24-27: within them, or whole ones that follow each
// other.
TEST(MixedSpace, SlotsLieInServersOrOverWholeOnes) {
  GpuPool pool;
  for (const auto& [first, gpus] : {std::pair(0, 4), std::pair(4, 4), std::pair(12, 4),
                                    std::pair(16, 3), std::pair(20, 4), std::pair(24, 4)}) {
    std::vector<std::int32_t>& server = pool.servers.emplace_back(gpus);
    std::iota(server.begin(), server.end(), first);
  }
  EXPECT_THAT(pool.slots(2, 2), ElementsAre(0, 2, 4, 6, 12, 14, 16, 20, 22, 24, 26));
  EXPECT_THAT(pool.slots(4, 2), ElementsAre(0, 4, 12, 20, 24));
  EXPECT_THAT(pool.slots(8, 2), ElementsAre(0, 20));
  EXPECT_THAT(pool.slots(7, 1), ElementsAre(12));
  EXPECT_THAT(pool.slots(7, 3), IsEmpty());
  EXPECT_THAT(pool.slots(16, 2), IsEmpty());
}

// Two copies of tp 2 in each stage, experts over ep 2 of expert tp 1. Pipeline A has layers 0-1 on
// ranks 0-3 and 2-5 on 4-7; B all six on 8-11; the pieces begin at 0 and 2.
TEST(MixedSpace, PiecesOfStagesWithCopies) {
  MixedJob mixed;
  mixed.base.tp = 2;
  mixed.base.ep = 2;
  mixed.base.expert_tp = 1;
  LayerBlock& block = mixed.base.model.blocks.emplace_back();
  block.layers = 6;
  block.modules.emplace_back().kind = ModuleKind::kMoe;
  mixed.copies = 2;
  mixed.gpu_types = {"H100"};
  mixed.kinds = {{1, {2, 4}, {0, 0}, {{0, 4}}}, {1, {6}, {0}, {{8}}}};
  EXPECT_EQ(mixed.width(), 4);
  EXPECT_EQ(mixed.gpus(), 12);
  const MixedPieces pieces = pieces_of(mixed);
  EXPECT_THAT(pieces.first_layer, ElementsAre(0, 2));
  EXPECT_THAT(pieces.dense[0], ElementsAre(ElementsAre(0, 2, 8, 10), ElementsAre(1, 3, 9, 11)));
  EXPECT_THAT(pieces.dense[1], ElementsAre(ElementsAre(4, 6, 8, 10), ElementsAre(5, 7, 9, 11)));
  // Experts: ranks 0 and 1 have a half each, and 2 and 3 the same halves.
  EXPECT_THAT(pieces.expert[0], ElementsAre(ElementsAre(0, 2, 8, 10), ElementsAre(1, 3, 9, 11)));
  mixed.base.ep = 4;
  EXPECT_THAT(pieces_of(mixed).expert[1], ElementsAre(ElementsAre(4, 8), ElementsAre(5, 9),
                                                      ElementsAre(6, 10), ElementsAre(7, 11)));
  mixed.base.sharding = Sharding::kZero3;
  mixed.base.hsdp_replicas = 2;
  EXPECT_THAT(pieces_of(mixed).replica[0], ElementsAre(ElementsAre(0, 8), ElementsAre(1, 9),
                                                       ElementsAre(2, 10), ElementsAre(3, 11)));
  const Job a = job_of(mixed, mixed.kinds[0]);
  EXPECT_EQ(a.gpus, 16);  // as if both pipelines were of its kind
  EXPECT_EQ(a.dp(), 4);
}

// Whatever the grains, all microbatches are shared out or none.
TEST(MixedSpace, NoMicrobatchIsLost) {
  for (std::int64_t grain = 1; grain < 40; ++grain) {
    for (std::int64_t microbatches = 1; microbatches < 50; ++microbatches) {
      std::int64_t sum = 0;
      for (const Share& share :
           share_out({1, 2}, {1, 3}, {4, 5}, {grain, 1 + grain / 7}, microbatches)) {
        for (const auto& [some, each] : share) {
          sum += some * each;
        }
      }
      EXPECT_TRUE(sum == 0 || sum == microbatches) << grain << " and " << microbatches;
    }
  }
}

TEST(MixedSpace, EveryPipelineGetsAtLeastOne) {
  for (std::int64_t microbatches = 5; microbatches < 40; ++microbatches) {
    const std::vector<Share> shares = share_out({2, 3}, {0.1, 5}, {0.2, 30}, {1, 1}, microbatches);
    std::int64_t sum = 0, pipelines = 0;
    for (const Share& share : shares) {
      for (const auto& [some, each] : share) {
        EXPECT_GE(each, 1);
        sum += some * each;
        pipelines += some;
      }
    }
    EXPECT_EQ(sum, microbatches);
    EXPECT_EQ(pipelines, 5);
  }
}

}  // namespace
}  // namespace lockstep::mixed_space_test
