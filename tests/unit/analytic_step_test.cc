#include "simulator/replay/analytic_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/layer_tables.h"

namespace lockstep::analytic_step_test {
namespace {

using testing::add_layer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::phase;
using ::testing::SizeIs;

constexpr std::int64_t kGB = 1'000'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// NVLink 100, NICs 10 GB/s, servers of 8 with 8 NICs.
AnalyticOptions options(Flavour flavour) {
  AnalyticOptions o;
  o.flavour = flavour;
  o.nvlink = parse_bandwidth("100GBps");
  o.nic = parse_bandwidth("10GBps");
  return o;
}

Time group(const StepResult& result, GroupKind kind) {
  return result.exposed_by_group[static_cast<std::size_t>(kind)];
}

/// An embedding and one layer, TP 8 and DP 2. Of 8 GB: TP all-reduce 140 ms, DP all-gather over
/// two servers with one NIC a group 8 / 10 * 1/2 s = 400 ms.
LayerTable two_layers() {
  LayerTable table;
  add_layer(table, "embedding_layer", phase(Time::us(1000), CommType::kAllReduce, 8 * kGB),
            phase(Time()), phase(Time()));
  add_layer(table, "mlp", phase(Time::us(2000), CommType::kAllReduce, 8 * kGB),
            phase(Time::us(3000), CommType::kAllReduce, 8 * kGB),
            phase(Time::us(4000), CommType::kAllGather, 8 * kGB, GroupKind::kDp));
  return table;
}

Parallelism tp8_dp2() {
  Parallelism p;
  p.gpus = 16;
  p.tp = 8;
  return p;
}

TEST(AnalyticStep, AddsComputeAndExposure) {
  const StepResult r = analytic_step(two_layers(), tp8_dp2(), options(Flavour::kDefault));
  EXPECT_EQ(r.compute, Time::us(10'000));
  EXPECT_EQ(group(r, GroupKind::kTp), Time::us(3 * 140'000));
  EXPECT_EQ(group(r, GroupKind::kDp), Time::us(400'000));
  EXPECT_EQ(r.exposed, Time::us(820'000));
  EXPECT_EQ(r.bubble, Time());
  EXPECT_EQ(r.total, Time::us(830'000));
  EXPECT_EQ(r.engine, "analytic");
  EXPECT_EQ(r.flavour, "default");
  EXPECT_EQ(r.gpus, 16);
  ASSERT_THAT(r.layers, SizeIs(2));
  EXPECT_EQ(r.layers[1].weight_grad.group_size, 2);
  EXPECT_EQ(r.layers[1].weight_grad.comm, Time::us(400'000));
  EXPECT_THAT(r.warnings, IsEmpty());
}

TEST(AnalyticStep, OverlapHidesAShare) {
  AnalyticOptions o = options(Flavour::kDefault);
  o.overlap.tp = 0.25;
  o.overlap.dp = 0.5;
  const StepResult r = analytic_step(two_layers(), tp8_dp2(), o);
  EXPECT_EQ(group(r, GroupKind::kTp), Time::us(315'000));  // 420 * 3/4
  EXPECT_EQ(group(r, GroupKind::kDp), Time::us(200'000));
  EXPECT_EQ(r.layers[1].weight_grad.comm, Time::us(400'000)) << "the total stays";
}

/// Two stages of TP 8; 2 micro-batches of 1 chunk; 1 GB from stage to stage.
TEST(AnalyticStep, BubbleAndTransfersBetweenStages) {
  LayerTable table = two_layers();
  table.pp_comm_bytes = kGB;
  Parallelism p = tp8_dp2();
  p.pp = 2;
  p.ga = 2;
  AnalyticOptions o = options(Flavour::kDefault);
  o.overlap.tp = 0.5;
  StepResult r = analytic_step(table, p, o);
  // (2 - 1) / (2 * 1) * (mlp: 9 ms compute + 2 * 70 ms exposed); DP is 1.
  EXPECT_EQ(r.bubble, Time::us(74'500));
  // 2 * 1 * 2 sends of 1 GB at a NIC's 10 GB/s.
  EXPECT_EQ(group(r, GroupKind::kPp), Time::us(400'000));
  EXPECT_EQ(r.total, r.compute + r.exposed + r.bubble);
  o.overlap.pp = 0.75;
  EXPECT_EQ(group(analytic_step(table, p, o), GroupKind::kPp), Time::us(100'000));
  p.pp = 1;
  EXPECT_EQ(group(analytic_step(table, p, o), GroupKind::kPp), Time()) << "one stage sends nothing";
}

TEST(AnalyticStep, ChunksPerStageReplaceVpp) {
  LayerTable table = two_layers();
  Parallelism p = tp8_dp2();
  p.pp = 2;
  p.vpp = 8;
  AnalyticOptions o = options(Flavour::kDefault);
  const StepResult by_vpp = analytic_step(table, p, o);
  EXPECT_EQ(by_vpp.bubble, Time::ps(289'000'000'000 / 8));  // 9 ms + 280 ms
  EXPECT_THAT(by_vpp.warnings, ElementsAre(HasSubstr("AICB")));
  o.chunks_per_stage = 1;
  const StepResult by_option = analytic_step(table, p, o);
  EXPECT_EQ(by_option.bubble, Time::us(289'000));
  EXPECT_THAT(by_option.warnings, IsEmpty());
}

TEST(AnalyticStep, BooksEachPhaseByItsOwnGroup) {
  LayerTable table;
  add_layer(table, "moe", phase(Time(), CommType::kAllReduce, 8 * kGB),
            phase(Time(), CommType::kAllReduce, 8 * kGB, GroupKind::kEp),
            phase(Time(), CommType::kAllReduce, 8 * kGB, GroupKind::kDpEp));
  Parallelism p;
  p.gpus = 16;
  p.tp = 2;
  p.ep = 4;
  AnalyticOptions o = options(Flavour::kDefault);
  o.overlap.ep = 1;
  const StepResult r = analytic_step(table, p, o);
  EXPECT_EQ(group(r, GroupKind::kTp), Time::us(80'000));  // 8 / 100 * 2 * 1/2
  EXPECT_EQ(group(r, GroupKind::kEp), Time());
  EXPECT_EQ(group(r, GroupKind::kDpEp), Time::us(800'000));  // one NIC: 8 / 10 * 2 * 1/2
  // SimAI books the input gradient with the forward column, and by its overlap.
  o.flavour = Flavour::kSimai;
  const StepResult s = analytic_step(table, p, o);
  EXPECT_EQ(group(s, GroupKind::kEp), Time());
  EXPECT_GT(s.layers[0].input_grad.exposed, Time());
  // The weight gradient's 6 digits of single precision: 8e9 / 2^30 / 10 s = 0.745 s.
  EXPECT_NEAR(group(s, GroupKind::kDpEp).us(), 745'058.06, 0.05);
}

TEST(AnalyticStep, GpusMustFillTheGroupsThatAreUsed) {
  Parallelism p = tp8_dp2();
  p.gpus = 20;
  EXPECT_THROW(analytic_step(two_layers(), p, options(Flavour::kDefault)), Error);
  EXPECT_NO_THROW(analytic_step(two_layers(), p, options(Flavour::kSimai)));
  p = tp8_dp2();
  p.ep = 3;
  EXPECT_NO_THROW(analytic_step(two_layers(), p, options(Flavour::kDefault)));
  try {
    LayerTable table = two_layers();
    table.layers[1].weight_grad.group = GroupKind::kDpEp;
    analytic_step(table, p, options(Flavour::kDefault));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 do not divide into ep 3"));
    EXPECT_THAT(error.what(), HasSubstr("in layer 1 (mlp)"));
  }
}

TEST(AnalyticStep, RefusesDegreesAndOptionsOutOfRange) {
  const auto with = [](auto change) {
    Parallelism p = tp8_dp2();
    AnalyticOptions o = options(Flavour::kDefault);
    change(p, o);
    analytic_step(two_layers(), p, o);
  };
  EXPECT_THROW(with([](auto& p, auto&) { p.tp = 0; }), Error);
  EXPECT_THROW(with([](auto& p, auto&) { p.gpus = 0; }), Error);
  EXPECT_THROW(with([](auto& p, auto&) { p.pp = -1; }), Error);
  EXPECT_THROW(with([](auto& p, auto&) { p.ep = std::int64_t{1} << 40; }), Error);
  EXPECT_THROW(with([](auto&, auto& o) { o.gpus_per_server = 0; }), Error);
  EXPECT_THROW(with([](auto&, auto& o) { o.nics_per_server = 0; }), Error);
  EXPECT_THROW(with([](auto&, auto& o) { o.nic = Bandwidth(); }), Error);
  EXPECT_THROW(with([](auto&, auto& o) { o.overlap.tp = 1.5; }), Error);
  EXPECT_THROW(with([](auto&, auto& o) { o.overlap.pp = -0.1; }), Error);
  EXPECT_NO_THROW(with([](auto& p, auto& o) {
    p.gpus = 0;
    o.gpus = 16;
  }));
}

TEST(AnalyticStep, NoMicroBatchCountsAsOne) {
  Parallelism p = tp8_dp2();
  p.ga = 0;
  const StepResult r = analytic_step(two_layers(), p, options(Flavour::kDefault));
  EXPECT_EQ(r.total, Time::us(830'000));
  EXPECT_THAT(r.warnings, ElementsAre(HasSubstr("ga is 0")));
  EXPECT_EQ(r.parallel.ga, 0) << "as the workload says";
}

TEST(AnalyticStep, EmptyTableTakesNoTime) {
  EXPECT_EQ(analytic_step(LayerTable{}, tp8_dp2(), options(Flavour::kDefault)).total, Time());
}

TEST(SimaiStep, SmallForwardMessagesCountAs4096Bytes) {
  LayerTable table;
  add_layer(table, "x", phase(Time(), CommType::kAllReduce, 4),
            phase(Time(), CommType::kAllReduce, 4), phase(Time()));
  const StepResult r = analytic_step(table, tp8_dp2(), options(Flavour::kSimai));
  EXPECT_EQ(r.layers[0].forward.bytes, Bytes(4096));
  EXPECT_EQ(r.layers[0].input_grad.bytes, Bytes(4));
  EXPECT_EQ(r.layers[0].forward.comm, Time::us(15));
}

TEST(SimaiStep, ScalesExposureInSinglePrecision) {
  LayerTable table;
  // (16 GiB + 100 B) / 10 GiB/s * 2 * 1/2 = 1.6 s and 9.3 ns. Near 2^30.6, 24 bits are 128 apart.
  add_layer(table, "x", phase(Time()), phase(Time()),
            phase(Time(), CommType::kAllReduce, kGiB * 16 + 100, GroupKind::kDp));
  AnalyticOptions o = options(Flavour::kSimai);
  const StepResult r = analytic_step(table, tp8_dp2(), o);
  EXPECT_EQ(r.layers[0].weight_grad.comm, Time::ns(1'600'000'009));
  EXPECT_EQ(r.layers[0].weight_grad.exposed, Time::ns(1'600'000'000)) << "multiples of 128 ns";
}

TEST(SimaiStep, OverlapOfStagesIsItsBandwidth) {
  LayerTable table = two_layers();
  table.pp_comm_bytes = kGiB;
  Parallelism p = tp8_dp2();
  p.pp = 2;
  p.ga = 3;
  AnalyticOptions o = options(Flavour::kSimai);
  EXPECT_EQ(group(analytic_step(table, p, o), GroupKind::kPp), Time()) << "overlap 1 by default";
  o.overlap.pp = 0.5;  // 2 * 1 * 3 * (1 GiB / 0.5 GiB/s) * (1 - 0.5)
  EXPECT_EQ(group(analytic_step(table, p, o), GroupKind::kPp), Time::us(6'000'000));
  o.overlap.pp = 0;
  EXPECT_EQ(group(analytic_step(table, p, o), GroupKind::kPp), Time());
}

TEST(SimaiStep, BubbleCountsCommunicationInFull) {
  Parallelism p = tp8_dp2();
  p.pp = 2;
  AnalyticOptions o = options(Flavour::kSimai);
  o.overlap.tp = 1;
  const StepResult r = analytic_step(two_layers(), p, o);
  // 9 ms + 2 * (8e9 / 2^30 / 100 * 2 * 7/8 s = 130.385160 ms)
  EXPECT_EQ(r.bubble, Time::ns(9'000'000 + 2 * 130'385'160));
  EXPECT_EQ(r.exposed, Time());
}

TEST(SimaiStep, GroupsWithoutNicCountAsNothing) {
  AnalyticOptions o = options(Flavour::kSimai);
  o.nics_per_server = 4;
  const StepResult r = analytic_step(two_layers(), tp8_dp2(), o);
  EXPECT_LT(r.layers[1].weight_grad.comm, Time());
  EXPECT_EQ(group(r, GroupKind::kDp), Time());
  EXPECT_THAT(r.warnings, ElementsAre(HasSubstr("fewer than its dp groups")));
  o.overlap.dp = 0.5;
  EXPECT_THROW(analytic_step(two_layers(), tp8_dp2(), o), Error);
}

TEST(ForwardRuns, CountsRecomputation) {
  using Indices = std::vector<std::int32_t>;
  EXPECT_THAT(forward_runs(3, {}, {}), ElementsAre(1, 1, 1));
  // Layers 1 and 2 run again before the backward of 3, layer 4 before that of 5.
  EXPECT_THAT(forward_runs(6, Indices{1, 4}, Indices{3, 5}), ElementsAre(1, 2, 2, 1, 2, 1));
  EXPECT_THAT(forward_runs(3, {}, Indices{2, 2}), ElementsAre(2, 2, 1)) << "from the first layer";
  EXPECT_THAT(forward_runs(3, Indices{1}, Indices{1}), ElementsAre(1, 1, 1));
  EXPECT_THAT(forward_runs(0, {}, {}), IsEmpty());
  EXPECT_THROW(forward_runs(3, Indices{3}, {}), Error);
  EXPECT_THROW(forward_runs(3, {}, Indices{-1}), Error);
}

TEST(AnalyticStep, RecomputationRepeatsForwardComputeAndCommunication) {
  LayerTable table = two_layers();
  table.checkpoints = {0};
  table.checkpoint_initiates = {1};
  const StepResult r = analytic_step(table, tp8_dp2(), options(Flavour::kDefault));
  EXPECT_EQ(r.layers[0].forward.compute, Time::us(2000));
  EXPECT_EQ(r.layers[0].forward.comm, Time::us(280'000));
  const StepResult s = analytic_step(table, tp8_dp2(), options(Flavour::kSimai));
  EXPECT_EQ(s.layers[0].forward.compute, Time::us(2000));
  EXPECT_EQ(s.layers[0].forward.comm, s.layers[1].forward.comm) << "SimAI counts it once";
}

}  // namespace
}  // namespace lockstep::analytic_step_test
