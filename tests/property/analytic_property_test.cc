// Seeded: what must hold of the analytic model for any job and cluster.
#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/replay/analytic_step.h"
#include "tests/support/layer_tables.h"

namespace lockstep::analytic_property_test {
namespace {

constexpr int kTrials = 3000;

struct Trial {
  Collective collective;
  GroupDegrees degrees;
  AnalyticOptions options;
};

Trial random_trial(Rng& rng) {
  constexpr std::array kOps{CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter,
                            CommType::kAllToAll, CommType::kBroadcast};
  constexpr std::array kGroups{GroupKind::kTp, GroupKind::kEp, GroupKind::kDp, GroupKind::kDpEp};
  const auto count = [&](std::int64_t most) { return rng.between(1, most); };
  Trial t;
  t.degrees.tp = count(32);
  t.degrees.ep = count(16);
  t.collective.op = kOps[rng.below(kOps.size())];
  t.collective.group = kGroups[rng.below(kGroups.size())];
  t.collective.ranks = t.collective.group == GroupKind::kTp   ? t.degrees.tp
                       : t.collective.group == GroupKind::kEp ? t.degrees.ep
                                                              : count(300);
  t.collective.bytes = Bytes(static_cast<std::int64_t>(std::exp2(rng.uniform() * 38)));
  t.degrees.gpus = t.degrees.tp * t.degrees.ep * 300;
  t.options.gpus_per_server = count(16);
  t.options.nics_per_server = count(16);
  t.options.nvlink = Bandwidth::gbps(count(4000));
  t.options.nic = Bandwidth::gbps(count(800));
  return t;
}

double seconds(const Trial& t) {
  return default_collective_time(t.collective, t.degrees, t.options).seconds();
}

TEST(AnalyticProperty, TimeNeverFallsWithBytes) {
  Rng rng(1, "analytic/bytes");
  for (int i = 0; i < kTrials; ++i) {
    Trial t = random_trial(rng);
    const double before = seconds(t);
    t.collective.bytes += Bytes(rng.between(0, t.collective.bytes.count()));
    ASSERT_GE(seconds(t), before) << "trial " << i;
  }
}

TEST(AnalyticProperty, BandwidthTimesKIsTimeOverKAboveTheFloor) {
  Rng rng(2, "analytic/scale");
  int above = 0;
  for (int i = 0; i < kTrials; ++i) {
    Trial t = random_trial(rng);
    Trial one_byte = t;
    one_byte.collective.bytes = Bytes(1);
    const double slow = seconds(t);
    const std::int64_t k = rng.between(2, 9);
    t.options.nvlink = Bandwidth::bits_per_second(t.options.nvlink->bits_per_second() * k);
    t.options.nic = Bandwidth::bits_per_second(t.options.nic->bits_per_second() * k);
    const double fast = seconds(t);
    ASSERT_LE(fast, slow);
    if (fast > seconds(one_byte)) {
      ++above;
      ASSERT_NEAR(fast * static_cast<double>(k), slow, 1e-9 * slow + 1e-11) << "trial " << i;
    }
  }
  EXPECT_GT(above, kTrials / 10);
}

TEST(AnalyticProperty, TimeNeverRisesWithBandwidthOrNics) {
  Rng rng(3, "analytic/bandwidth");
  for (int i = 0; i < kTrials; ++i) {
    Trial t = random_trial(rng);
    if (t.collective.group == GroupKind::kTp && t.collective.op != CommType::kAllReduce) {
      continue;  // what limits may change, and with it the measured table
    }
    const double before = seconds(t);
    switch (rng.below(3)) {
      case 0:
        t.options.nvlink = Bandwidth::gbps(5000);
        break;
      case 1:
        t.options.nic = Bandwidth::gbps(900);
        break;
      default:
        t.options.nics_per_server += rng.between(1, 8);
    }
    // Beyond V the ring changes NIC and gains g / (g - 1): wider NICs never hurt.
    ASSERT_LE(seconds(t), before * (1 + 1e-12) + 1e-12) << "trial " << i;
  }
}

TEST(AnalyticProperty, SimaiNeverTakesNegativeTimeWhileNicsLast) {
  Rng rng(4, "analytic/simai");
  for (int i = 0; i < kTrials; ++i) {
    Trial t = random_trial(rng);
    t.options.nics_per_server = 1000;
    t.collective.bytes = Bytes(std::min(t.collective.bytes.count(), std::int64_t{16} << 30));
    const Time time = simai_collective_time(t.collective, t.degrees, t.options);
    ASSERT_GE(time, Time());
    ASSERT_EQ(time.count_ps() % 1000, 0);
  }
}

/// A step's parts add up, exposure never exceeds communication, overlap never lengthens a step.
TEST(AnalyticProperty, StepsAddUp) {
  Rng rng(5, "analytic/step");
  constexpr std::array kOps{CommType::kNone, CommType::kAllReduce, CommType::kAllToAll};
  for (int i = 0; i < kTrials / 10; ++i) {
    Parallelism p;
    p.tp = std::int64_t{1} << rng.below(4);
    p.ep = std::int64_t{1} << rng.below(3);
    p.pp = rng.between(1, 4);
    p.ga = rng.between(1, 8);
    p.gpus = p.tp * p.ep * p.pp * rng.between(1, 4);
    LayerTable table;
    table.pp_comm_bytes = static_cast<double>(rng.below(1 << 30));
    const auto any = [&](GroupKind a, GroupKind b) {
      return testing::phase(Time::ns(rng.between(0, 1'000'000)), kOps[rng.below(kOps.size())],
                            rng.between(0, std::int64_t{1} << 30), rng.below(2) != 0 ? a : b);
    };
    for (int layer = 0; layer < 8; ++layer) {
      testing::add_layer(table, layer == 0 ? "embedding_layer" : "layer",
                         any(GroupKind::kTp, GroupKind::kEp), any(GroupKind::kTp, GroupKind::kEp),
                         any(GroupKind::kDp, GroupKind::kDpEp));
    }
    AnalyticOptions o;
    const StepResult r = analytic_step(table, p, o);
    EXPECT_EQ(r.total, r.compute + r.exposed + r.bubble);
    Time by_group;
    for (const Time t : r.exposed_by_group) {
      by_group += t;
    }
    EXPECT_EQ(by_group, r.exposed);
    o.overlap = {rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform()};
    const StepResult hidden = analytic_step(table, p, o);
    EXPECT_LE(hidden.total, r.total);
    for (const LayerResult& layer : hidden.layers) {
      EXPECT_LE(layer.forward.exposed, layer.forward.comm);
      EXPECT_LE(layer.weight_grad.exposed, layer.weight_grad.comm);
    }
  }
}

}  // namespace
}  // namespace lockstep::analytic_property_test
