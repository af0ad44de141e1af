#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/network/analytic/bus_bandwidth.h"
#include "simulator/network/analytic/efficiency_table.h"
#include "simulator/network/analytic/hardware.h"

namespace lockstep::analytic_bandwidth_test {
namespace {

constexpr double kTolerance = 1e-12;

TEST(Hardware, NvlinkIsLinksTimesWhatOneGives) {
  EXPECT_EQ(nvlink_bandwidth(GpuType::kA100), parse_bandwidth("240GBps"));    // 12 * 20.0
  EXPECT_EQ(nvlink_bandwidth(GpuType::kA800), parse_bandwidth("160GBps"));    //  8 * 20.0
  EXPECT_EQ(nvlink_bandwidth(GpuType::kH100), parse_bandwidth("370.8GBps"));  // 18 * 20.6
  EXPECT_EQ(nvlink_bandwidth(GpuType::kH800), parse_bandwidth("164.8GBps"));  //  8 * 20.6
  EXPECT_EQ(nvlink_bandwidth(GpuType::kH20), nvlink_bandwidth(GpuType::kH100));
  EXPECT_EQ(nic_bandwidth(NicType::kCx6), parse_bandwidth("23.5GBps"));
  EXPECT_EQ(nic_bandwidth(NicType::kCx7), parse_bandwidth("48.5GBps"));
  EXPECT_EQ(nic_bandwidth(NicType::kBf3), parse_bandwidth("48.5GBps"));
}

TEST(Hardware, NamesAreReadInAnyCase) {
  EXPECT_EQ(parse_gpu_type("h800"), GpuType::kH800);
  EXPECT_EQ(parse_nic_type("CX6"), NicType::kCx6);
  EXPECT_THROW(parse_gpu_type("H200"), Error);
  EXPECT_THROW(parse_nic_type(""), Error);
}

double ring(double nodes, double g, double x, double nvlink, double nic) {
  return bus_bandwidth<double>(CommType::kAllReduce, {nodes, g, x}, nvlink, nic).rate;
}

TEST(BusBandwidth, RingInsideAServerIsNvlink) { EXPECT_EQ(ring(1, 8, 8, 360, 50), 360); }

TEST(BusBandwidth, RingOfOneGpuAServerIsItsNics) {
  EXPECT_EQ(ring(16, 1, 1, 360, 50), 50);
  EXPECT_EQ(ring(16, 1, 2, 360, 50), 100);
}

TEST(BusBandwidth, RingOverServersIsTheNarrower) {
  EXPECT_EQ(ring(2, 8, 4, 360, 50), 200);  // B x = 200 <= V
  // B x = 400 > V = 360, so rings change NIC: min(360 * 8/7 = 411.4, 400).
  EXPECT_EQ(ring(2, 8, 8, 360, 50), 400);
  // min(300 * 8/7 = 342.86, 400).
  EXPECT_NEAR(ring(2, 8, 8, 300, 50), 300 * 8.0 / 7.0, kTolerance);
}

TEST(BusBandwidth, AllToAllSendsThePartThatLeavesTheServer) {
  // n = 16 ranks on 2 servers, each GPU with one NIC of 50: 50 * 15 / (16 - 8).
  EXPECT_NEAR(bus_bandwidth<double>(CommType::kAllToAll, {2, 8, 8}, 360, 50).rate, 93.75,
              kTolerance);
  EXPECT_EQ(bus_bandwidth<double>(CommType::kAllToAll, {1, 8, 8}, 360, 50).rate, 360);
}

TEST(BusBandwidth, SaysWhichSideLimits) {
  EXPECT_TRUE(bus_bandwidth<double>(CommType::kAllGather, {2, 8, 8}, 300, 50).nvlink_limited);
  EXPECT_FALSE(bus_bandwidth<double>(CommType::kAllGather, {2, 8, 8}, 360, 50).nvlink_limited);
}

/// Columns of 1 and 4 servers measured, the rest not, but "Multi 16".
EfficiencyTable small_table() {
  EfficiencyTable table;
  table.rows.resize(3);
  const double one[] = {0.2, 0.4, 0.8};
  const double four[] = {0.1, 0.3, 0.4};
  for (std::size_t i = 0; i < 3; ++i) {
    table.rows[i].size = Bytes(std::int64_t{1000} << i);
    table.rows[i].efficiency[0] = one[i];
    table.rows[i].efficiency[2] = four[i];
    table.rows[i].efficiency[kMultiColumn] = 0.5;
  }
  return table;
}

TEST(Efficiency, IsRelativeToTheLastRowAndLinearInSize) {
  const EfficiencyTable table = small_table();
  EXPECT_NEAR(relative_efficiency(table, Bytes(2000), 1), 0.5, kTolerance);   // 0.4 / 0.8
  EXPECT_NEAR(relative_efficiency(table, Bytes(3000), 1), 0.75, kTolerance);  // half way to 1
  EXPECT_NEAR(relative_efficiency(table, Bytes(500), 1), 0.25, kTolerance);   // as the first row
  EXPECT_EQ(relative_efficiency(table, Bytes(1'000'000), 1), 1);              // as the last
}

TEST(Efficiency, LiesBetweenMeasuredColumnsInLog2OfServers) {
  const EfficiencyTable table = small_table();
  // At 2000 B: 0.5 on 1 server, 0.75 on 4; log2(2) is half of log2(4).
  EXPECT_NEAR(relative_efficiency(table, Bytes(2000), 2), 0.625, kTolerance);
  EXPECT_NEAR(relative_efficiency(table, Bytes(2000), 4), 0.75, kTolerance);
  EXPECT_NEAR(relative_efficiency(table, Bytes(2000), 100), 0.75, kTolerance);
}

TEST(Efficiency, IsRaisedWhereALargerMessageWouldBeFaster) {
  // On 4 servers: 1000 B at 0.25 would take 4000 units, 2000 B at 0.75 only 2667. So 1000 B gets
  // 0.75 * 1000 / 2000.
  EXPECT_NEAR(relative_efficiency(small_table(), Bytes(1000), 4), 0.375, kTolerance);
}

TEST(Efficiency, WithoutMeasurementsIsOne) {
  EXPECT_EQ(relative_efficiency(EfficiencyTable{}, Bytes(5), 3), 1);
  EXPECT_EQ(relative_multi_efficiency(EfficiencyTable{}, Bytes(5)), 1);
}

TEST(SimaiEfficiency, TakesTheColumnOf16ForUnknownServersAndOneForEmptyCells) {
  const EfficiencyTables& t = published_efficiency();
  const Bytes mib24(24 << 20);
  // 24 MiB is half way between rows: all-to-all, 1 server: (.44 + .51) / 2 / .78.
  EXPECT_NEAR(simai_relative_efficiency(t.all_to_all, mib24, 1), 0.475 / 0.78, kTolerance);
  // 3 servers: the column of 16, (.62 + .66) / 2 / .90. 9: "Multi 16", (.86 + .92) / 2 / .96.
  EXPECT_NEAR(simai_relative_efficiency(t.all_to_all, mib24, 3), 0.64 / 0.90, kTolerance);
  EXPECT_NEAR(simai_relative_efficiency(t.all_to_all, mib24, 9), 0.89 / 0.96, kTolerance);
  EXPECT_EQ(simai_relative_efficiency(t.all_to_all, mib24, 64), 1);
  EXPECT_NEAR(simai_relative_efficiency(t.nic, mib24, 128), (0.0087 + 0.021225) / 2 / 0.919175,
              kTolerance);
}

TEST(SimaiEfficiency, EndsOfTheTable) {
  const EfficiencyTables& t = published_efficiency();
  const std::int64_t last = std::int64_t{16} << 30;
  EXPECT_EQ(simai_relative_efficiency(t.nic, Bytes(0), 2), 1);
  EXPECT_NEAR(simai_relative_efficiency(t.nic, Bytes(1), 2), 0.32 / 0.96, kTolerance);
  EXPECT_EQ(simai_relative_efficiency(t.nic, Bytes(last), 2), 1);
  EXPECT_THROW(simai_relative_efficiency(t.nic, Bytes(last + 1), 2), Error);
  EXPECT_EQ(relative_efficiency(t.nic, Bytes(last + 1), 2), 1);
}

}  // namespace
}  // namespace lockstep::analytic_bandwidth_test
