// Health of made-up sweeps.
#include "analysis/compare/health.h"

#include <gtest/gtest.h>

namespace lockstep::compare::health_test {
namespace {

/// A send/receive between each two of n hosts, 100 us, times `slow` where it says so.
template <class F>
PhysicalLog pairs(int hosts, F&& slow) {
  PhysicalLog log;
  log.names.push_back("sendrecv");
  for (int a = 0; a < hosts; ++a) {
    for (int b = a + 1; b < hosts; ++b) {
      CommSetting setting;
      setting.id = std::to_string(a) + "-" + std::to_string(b);
      setting.ranks = setting.servers = 2;
      setting.hosts = {"n" + std::to_string(a), "n" + std::to_string(b)};
      CommRow row;
      row.setting = static_cast<std::int32_t>(log.settings.size());
      row.op = CommType::kSendRecv;
      row.ranks = 2;
      row.bytes = Bytes(1 << 20);
      row.time_s = 100e-6 * slow(a, b);
      log.settings.push_back(setting);
      log.comms.push_back(row);
    }
  }
  return log;
}

TEST(Health, NothingStandsOut) {
  const Health health = check_health({pairs(5, [](int, int) { return 1.0; })});
  EXPECT_EQ(health.tests.size(), 10U);
  EXPECT_TRUE(health.findings.empty());
}

TEST(Health, ASlowNodeIsNamedOnce) {
  const Health health =
      check_health({pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 2.0 : 1.0; })});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowNode);
  EXPECT_EQ(health.findings[0].subject, "n2");
  EXPECT_DOUBLE_EQ(health.findings[0].slowdown, 2);
}

TEST(Health, ASlowPairOfSoundNodes) {
  const Health health =
      check_health({pairs(6, [](int a, int b) { return a == 1 && b == 4 ? 3.0 : 1.0; })});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowPair);
  EXPECT_EQ(health.findings[0].subject, "n1 n4");
}

TEST(Health, WhatALogTellsByItself) {
  PhysicalLog log = pairs(2, [](int, int) { return 1.0; });
  log.settings[0].transport = "Socket";
  log.settings[0].gdr = false;
  log.comms[0].wrong = 3;
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 3U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kTcpFallback);
  EXPECT_EQ(health.findings[1].kind, FindingKind::kGdrOff);
  EXPECT_EQ(health.findings[2].kind, FindingKind::kWrongResults);
}

}  // namespace
}  // namespace lockstep::compare::health_test
