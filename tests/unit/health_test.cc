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

// Names that clouds make up end in letters.
// Two slow hosts of five are in seven of ten pairs: the median is slow, and no host stands out.
TEST(Health, ASlowMedianIsWarnedOf) {
  const Health two = check_health({pairs(5, [](int, int b) { return b >= 3 ? 2.0 : 1.0; })});
  EXPECT_TRUE(two.findings.empty());
  ASSERT_EQ(two.warnings.size(), 1U);
  EXPECT_NE(two.warnings[0].find("3 of 10 tests take less than 1/1.2 of the median"),
            std::string::npos)
      << two.warnings[0];
  const Health one = check_health({pairs(6, [](int, int b) { return b == 5 ? 2.0 : 1.0; })});
  EXPECT_EQ(one.findings.size(), 1U);
  EXPECT_TRUE(one.warnings.empty());
}

TEST(Health, HostsWithoutNumbersAreOneCluster) {
  PhysicalLog log = pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 1.5 : 1.0; });
  const std::vector<std::string> names{"mig-235z", "mig-gq7k", "mig-k0lm",
                                       "mig-p9xx", "mig-tt2b", "mig-zz1h"};
  for (CommSetting& setting : log.settings) {
    for (std::string& host : setting.hosts) {
      host = names[static_cast<std::size_t>(host[1] - '0')];
    }
  }
  const Health health = check_health({log});
  EXPECT_EQ(health.groups, 1U);
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].subject, "mig-k0lm");
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

TEST(Health, APairThatFellBackToTcpHasNoBadCables) {
  PhysicalLog log = pairs(6, [](int a, int b) { return a == 1 && b == 4 ? 15.0 : 1.0; });
  for (CommSetting& setting : log.settings) {
    setting.env["NCCL_IB_DISABLE"] = setting.id == "1-4" ? "1" : "0";
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kTcpFallback);
  EXPECT_EQ(health.findings[0].subject, "1-4");
  EXPECT_NE(health.findings[0].evidence.find("15.00 times the median"), std::string::npos);
}

TEST(Health, FewerNicsThanLikeTests) {
  PhysicalLog log = pairs(6, [](int a, int b) { return a == 1 && b == 4 ? 1.9 : 1.0; });
  for (CommSetting& setting : log.settings) {
    setting.nics = {"mlx5_0:1/IB", "mlx5_1:1/IB"};
    if (setting.id == "1-4") {
      setting.nics.pop_back();
    }
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kFewNics);
  EXPECT_NE(health.findings[0].evidence.find("without mlx5_1:1/IB"), std::string::npos);
}

// GPU Direct is off on one host: it is named once, not each of its pairs.
TEST(Health, WhatAllTestsOfAHostSayIsSaidOfTheHost) {
  PhysicalLog log = pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 2.0 : 1.0; });
  for (CommSetting& setting : log.settings) {
    setting.net_channels = 8;
    setting.gdr_channels = setting.id.find('2') == std::string::npos ? 8 : 0;
    setting.gdr = setting.gdr_channels > 0;
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kGdrOff);
  EXPECT_EQ(health.findings[0].subject, "n2");
}

// Four pairs that share no host: nothing tells a host from a cable.
TEST(Health, NobodyIsWellWithOthersWhereThereAreNone) {
  PhysicalLog all = pairs(8, [](int a, int b) { return a == 0 && b == 1 ? 2.0 : 1.0; });
  PhysicalLog log;
  log.names = all.names;
  for (std::size_t i = 0; i < all.settings.size(); ++i) {
    const std::string& id = all.settings[i].id;
    if (id == "0-1" || id == "2-3" || id == "4-5" || id == "6-7") {
      CommRow row = all.comms[i];
      row.setting = static_cast<std::int32_t>(log.settings.size());
      log.settings.push_back(all.settings[i]);
      log.comms.push_back(row);
    }
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowPair);
  EXPECT_EQ(health.findings[0].evidence.find("well with"), std::string::npos);
  EXPECT_NE(health.findings[0].evidence.find("about half the rate"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::compare::health_test
