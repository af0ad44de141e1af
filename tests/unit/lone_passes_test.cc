#include "simulator/replay/lone_passes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::lone_passes_test {
namespace {

using Ops = std::vector<std::int32_t>;

/// A program on the streams compute, tp and dp, with what its operations take, in us.
class Maker {
 public:
  Maker() { program_.streams = {"compute", "tp", "dp"}; }
  std::int32_t add(OpType type, std::int32_t stream, std::int64_t us,
                   std::vector<std::int32_t> after, std::int32_t microbatch = 0) {
    Op op;
    op.type = type;
    op.stream = stream;
    op.comm = stream == 0 ? CommType::kNone : CommType::kAllGather;
    op.after = std::move(after);
    op.microbatch = microbatch;
    op.chunk = 0;
    program_.ops.push_back(op);
    takes_.push_back(Time::us(us));
    return static_cast<std::int32_t>(program_.ops.size()) - 1;
  }
  LonePasses play_turns() const { return lone_passes(program_, takes_, {}, {}, true); }
  LonePasses play(const Interference& interference = {}) const {
    std::vector<std::int32_t> taken;
    for (const Op& op : program_.ops) {
      taken.push_back(op.comm == CommType::kNone ? 0 : 1);
    }
    return lone_passes(program_, takes_, interference, taken);
  }
  OpProgram& program() { return program_; }

 private:
  OpProgram program_;
  std::vector<Time> takes_;
};

// A pass of 3 and 4 and one of 5 between them, behind whose 5 a transfer of 2 is waited for: they
// begin at 0 and end at 12 and 10, and each says what it computes itself, 7 and 5. The first waits
// 12 - 7 - 5 = 0, the second nothing either, for 7 + 5 are more than its 10.
TEST(LonePasses, PassesThatTakeTurnsComputeForThemselves) {
  Maker maker;
  const auto a = maker.add(OpType::kForward, 0, 3, {});
  const auto b = maker.add(OpType::kBackward, 0, 5, {a});
  maker.add(OpType::kBackward, 1, 2, {b});
  maker.add(OpType::kForward, 0, 4, {b});
  const LonePasses played = maker.play_turns();
  const PassKey forward{OpType::kForward, 0, 0}, backward{OpType::kBackward, 0, 0};
  EXPECT_EQ(played.computes.at(forward), Time::us(7));
  EXPECT_EQ(played.computes.at(backward), Time::us(5));
  EXPECT_EQ(played.waits.at(forward), Time());
  EXPECT_EQ(played.waits.at(backward), Time());
}

// Gradients of a microbatch: of a pass that computes 3, 3 and 1 the first bucket, of 5, is reduced
// from 3 on and the second, of 2, behind it: until 10, 3 behind the pass, so that 4 of the 7 are
// hidden beside it. The reductions of the one before, however long, are not these.
TEST(LonePasses, ReductionsOfEveryMicrobatchAreHiddenBesideItsPass) {
  for (const std::int64_t first_bucket : {5, 50}) {
    Maker maker;
    std::int32_t last = -1;
    for (const std::int32_t microbatch : {0, 1}) {
      const auto a = maker.add(OpType::kBackward, 0, 3, last < 0 ? Ops() : Ops{last}, microbatch);
      maker.add(OpType::kReduceGradients, 2, microbatch == 0 ? first_bucket : 5, {a}, microbatch);
      const auto b = maker.add(OpType::kBackward, 0, 3, {a}, microbatch);
      maker.add(OpType::kReduceGradients, 2, 2, {b}, microbatch);
      last = maker.add(OpType::kBackward, 0, 1, {b}, microbatch);
    }
    for (const bool named : {true, false}) {  // an operation may leave its chunk out
      for (Op& op : maker.program().ops) {
        op.chunk = named || op.type != OpType::kReduceGradients ? 0 : -1;
      }
      const LonePasses played = maker.play();
      EXPECT_EQ(played.reductions_of_passes.at({0, 1}).beside, Time::us(4));
      EXPECT_EQ(played.reductions_of_passes.at({0, 1}).behind, Time::us(3));
    }
  }
}

// Computes 3, waits for a transfer of 5, computes 4 beside one of 6, which it waits for: 3 + 5 + 6,
// of which 7 are its own. Twice as quick it computes 3.5 and waits 5 + 4, as less is hidden.
TEST(LonePasses, WhatComputationHidesStaysHidden) {
  const auto waits = [](std::int64_t first, std::int64_t second) {
    Maker maker;
    const auto a = maker.add(OpType::kForward, 0, first, {});
    const auto b = maker.add(OpType::kForward, 1, 5, {a});
    const auto c = maker.add(OpType::kForward, 1, 6, {b});
    const auto d = maker.add(OpType::kForward, 0, second, {b});
    maker.add(OpType::kForward, 0, 0, {c, d});
    return maker.play().waits.at({OpType::kForward, 0, 0});
  };
  EXPECT_EQ(waits(3, 4), Time::us(5 + 2));
  EXPECT_EQ(waits(6, 2), Time::us(5 + 4));
  EXPECT_EQ(waits(3, 9), Time::us(5));
}

// A last pass of 4 and 4, whose first half's gradients take 7 to reduce and the second's 7: they
// end at 4 + 7 + 7 = 18, 10 behind the pass. With 8 and 8 at 8 + 7 + 7 = 22, or 16 + 7 = 23 where
// the second begins later: 7 behind it.
TEST(LonePasses, ReductionsBehindTheLastPass) {
  const auto behind = [](std::int64_t half) {
    Maker maker;
    const auto a = maker.add(OpType::kBackward, 0, half, {});
    maker.add(OpType::kReduceGradients, 2, 7, {a});
    const auto b = maker.add(OpType::kBackward, 0, half, {a});
    maker.add(OpType::kReduceGradients, 2, 7, {b});
    return maker.play().reductions.at(0);
  };
  EXPECT_EQ(behind(4), Time::us(10));
  EXPECT_EQ(behind(8), Time::us(7));
}

// Parameters are gathered for each pass: 5 before the first, those of the next behind a reduction
// of 8 on the same stream. That ends at 5 + 3 + 8 = 16, they at 21, 13 after the pass before.
TEST(LonePasses, GathersWaitBehindReductions) {
  Maker maker;
  const auto gathered = maker.add(OpType::kGatherParameters, 2, 5, {});
  const auto pass = maker.add(OpType::kBackward, 0, 3, {gathered});
  maker.add(OpType::kReduceGradients, 2, 8, {pass});
  const auto again = maker.add(OpType::kGatherParameters, 2, 5, {pass}, 1);
  maker.add(OpType::kForward, 0, 3, {again}, 1);
  const LonePasses alone = maker.play();
  EXPECT_EQ(alone.waits.at({OpType::kBackward, 0, 0}), Time::us(5));
  EXPECT_EQ(alone.waits.at({OpType::kForward, 0, 1}), Time::us(13));
}

// Gradients of weights in a pass of their own, behind another chunk's: what of the reduction is
// left then is 7 - 2.
TEST(LonePasses, ReductionsBehindGradientsOfWeights) {
  Maker maker;
  const auto first = maker.add(OpType::kBackward, 0, 4, {});
  const auto weights = maker.add(OpType::kWeightGradient, 0, 3, {first});
  maker.add(OpType::kReduceGradients, 2, 7, {weights});
  maker.add(OpType::kWeightGradient, 0, 2, {weights});
  const LonePasses alone = maker.play();
  EXPECT_EQ(alone.reductions.at(0), Time::us(5));
  EXPECT_EQ(alone.waits.at({OpType::kWeightGradient, 0, 0}), Time());
  EXPECT_EQ(alone.clip, std::nullopt);
}

// A norm of 3 behind a reduction that ends at 4 + 7, and the sum of all, of 2.
TEST(LonePasses, ClippingComputesBeforeItMeets) {
  Maker maker;
  const auto pass = maker.add(OpType::kBackward, 0, 4, {});
  const auto reduced = maker.add(OpType::kReduceGradients, 2, 7, {pass});
  const auto norm = maker.add(OpType::kClip, 0, 3, {reduced}, -1);
  maker.add(OpType::kClip, 1, 2, {norm}, -1);
  EXPECT_EQ(maker.play().clip, Time::us(5));
}

// At half speed beside a collective: gradients that take 7 to reduce from 4 on, behind which others
// take 2 (to 13). Of a pass of 6 from 4 on 3.5 are done at 11 and 4.5 at 13, the rest at 14.5.
TEST(LonePasses, CollectivesSlowComputationsDown) {
  Maker maker;
  const auto first = maker.add(OpType::kBackward, 0, 4, {}, 0);
  maker.add(OpType::kReduceGradients, 2, 7, {first});
  maker.add(OpType::kReduceGradients, 2, 2, {first});
  maker.add(OpType::kBackward, 0, 6, {first}, 1);
  const LonePasses alone = maker.play({.share = 0.5});
  EXPECT_EQ(alone.computes.at({OpType::kBackward, 0, 0}), Time::us(4));
  EXPECT_EQ(alone.computes.at({OpType::kBackward, 0, 1}), Time::ns(10500));
  EXPECT_EQ(alone.waits.at({OpType::kBackward, 0, 1}), Time());
  EXPECT_EQ(alone.reductions.at(0), Time());
  EXPECT_EQ(maker.play().computes.at({OpType::kBackward, 0, 1}), Time::us(6));
}

// The host takes 4 for each of two kernels of 1: the second begins at 8.
TEST(LonePasses, TheHostLaunches) {
  Maker maker;
  maker.add(OpType::kForward, 0, 1, {});
  maker.add(OpType::kForward, 0, 1, {0});
  for (Op& op : maker.program().ops) {
    op.host = Time::us(4);
  }
  EXPECT_EQ(maker.play().waits.at({OpType::kForward, 0, 0}), Time::us(3));
}

}  // namespace
}  // namespace lockstep::lone_passes_test
