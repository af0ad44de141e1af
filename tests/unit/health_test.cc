// Health of made-up sweeps.
#include "analysis/compare/health.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/compare/host_clusters.h"

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

// The last host of a file's name is no other than itself: ".log" and "#2" are the file's.
TEST(Health, HostsOfFileNames) {
  const std::vector<std::string> two = {"gpu-a1", "gpu-b2"};
  EXPECT_EQ(hosts_in("all_reduce-n2-g8-gpu-a1_gpu-b2", 2), two);
  EXPECT_EQ(hosts_in("all_reduce-n2-g8-gpu-a1_gpu-b2.log", 2), two);
  EXPECT_EQ(hosts_in("all_reduce-n2-g8-gpu-a1_gpu-b2.txt.gz#2", 2), two);
  EXPECT_EQ(hosts_in("x-g8-a.lan_b.lan", 2), (std::vector<std::string>{"a.lan", "b.lan"}));
}

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

// Names that clouds make up end in letters.
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

// Names of racks tell no clusters apart where hosts were tested together.
TEST(Health, HostsThatWereTestedTogetherAreOneCluster) {
  PhysicalLog log = pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 3.0 : 1.0; });
  for (CommSetting& setting : log.settings) {
    for (std::string& host : setting.hosts) {  // gpu-a0, gpu-b1, …
      host = std::string("gpu-") + static_cast<char>('a' + host[1] - '0') + host[1];
    }
  }
  const Health health = check_health({log});
  EXPECT_EQ(health.groups, 1U);
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowNode);
  EXPECT_EQ(health.findings[0].subject, "gpu-c2");
}

// Two clusters that no test connects are two, each with a rate of its own.
TEST(Health, HostsOfOtherNamesThatNeverMeetAreAnotherCluster) {
  PhysicalLog log = pairs(4, [](int, int) { return 1.0; });
  const PhysicalLog other = pairs(4, [](int, int) { return 3.0; });
  for (std::size_t i = 0; i < other.settings.size(); ++i) {
    CommRow row = other.comms[i];
    row.setting = static_cast<std::int32_t>(log.settings.size());
    log.settings.push_back(other.settings[i]);
    for (std::string& host : log.settings.back().hosts) {
      host = "old" + host;
    }
    log.comms.push_back(row);
  }
  const Health health = check_health({log});
  EXPECT_EQ(health.groups, 2U);
  EXPECT_TRUE(health.findings.empty());
}

// 18 sizes from 8 B to 1 MiB, each 20 us and its bytes at 10 GB/s, at 5 with one host: 1.13 times
// as long by the mean bandwidth, and 1.70 times over the three sizes from 256 KiB on, which reach
// half of the most.
TEST(Health, ALinkOfHalfTheRateIsNotHiddenBySmallSizes) {
  const PhysicalLog one = pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 2.0 : 1.0; });
  PhysicalLog log = one;
  log.comms.clear();
  for (const CommRow& row : one.comms) {
    const double slow = row.time_s / 100e-6;
    for (std::int64_t bytes = 8; bytes <= 1 << 20; bytes *= 2) {
      CommRow other = row;
      other.bytes = Bytes(bytes);
      other.time_s = 20e-6 + slow * static_cast<double>(bytes) / 10e9;
      log.comms.push_back(other);
    }
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowNode);
  EXPECT_EQ(health.findings[0].subject, "n2");
  EXPECT_NEAR(health.findings[0].slowdown, 1.70, 0.01);
  EXPECT_NE(health.findings[0].evidence.find("times the median of bandwidth-bound sizes"),
            std::string::npos)
      << health.findings[0].evidence;
}

// 8 B to 64 KiB in 20 us each, 26 at the two largest with one host: latency bounds them all, and
// what their bandwidths would say is noise.
TEST(Health, SizesThatLatencyBoundsAccuseNobody) {
  const PhysicalLog one = pairs(6, [](int a, int b) { return a == 2 || b == 2 ? 1.3 : 1.0; });
  PhysicalLog log = one;
  log.comms.clear();
  for (const CommRow& row : one.comms) {
    for (std::int64_t bytes = 8; bytes <= 1 << 16; bytes *= 2) {
      CommRow other = row;
      other.bytes = Bytes(bytes);
      other.time_s = bytes >= 1 << 15 ? row.time_s / 5 : 20e-6;
      log.comms.push_back(other);
    }
  }
  EXPECT_TRUE(check_health({log}).findings.empty());
}

// Of three tests none can stand out, and nothing is said to be well.
TEST(Health, TooFewTestsAreNotJudged) {
  const Health three = check_health({pairs(3, [](int, int b) { return b == 2 ? 5.0 : 1.0; })});
  EXPECT_EQ(three.not_judged, 3U);
  EXPECT_FALSE(three.tests[0].judged);
  EXPECT_EQ(health_table(three),
            "3 tests in 1 set of like ones; 0 slow\n3 tests were not judged: fewer than 4 are "
            "alike\n");
  const Health six = check_health({pairs(4, [](int, int) { return 1.0; })});
  EXPECT_EQ(six.not_judged, 0U);
  EXPECT_EQ(health_table(six), "6 tests in 1 set of like ones; 0 slow\nnothing stands out\n");
}

// Each of six tests takes 1.5 times as long at two of six sizes, other ones: 6 / (4 + 2 / 1.5)
// = 1.125 times the usual times, which no test reaches, but no longer than the others.
TEST(Health, SlowdownsAreOfWhatLikeTestsReach) {
  PhysicalLog log = pairs(4, [](int, int) { return 1.0; });
  const std::vector<CommRow> once = log.comms;
  log.comms.clear();
  for (const CommRow& row : once) {
    for (int i = 0; i < 6; ++i) {
      CommRow other = row;
      other.bytes = Bytes((1 << 20) + 4096 * i);
      other.time_s = i == row.setting || i == (row.setting + 1) % 6 ? 150e-6 : 100e-6;
      log.comms.push_back(other);
    }
  }
  for (const TestHealth& test : check_health({log}).tests) {
    EXPECT_DOUBLE_EQ(test.slowdown, 1);
  }
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

// Two hosts that were tested with each other alone, five times: one run went over TCP, say.
TEST(Health, ASlowRunOfHostsThatAreSoundInOthersIsNoCable) {
  const PhysicalLog one = pairs(2, [](int, int) { return 1.0; });
  PhysicalLog log;
  log.names = one.names;
  for (int run = 0; run < 5; ++run) {
    log.settings.push_back(one.settings[0]);
    log.settings.back().id = "run" + std::to_string(run);
    log.comms.push_back(one.comms[0]);
    log.comms.back().setting = run;
    log.comms.back().time_s *= run == 3 ? 4.4 : 1;
  }
  const Health health = check_health({log});
  ASSERT_EQ(health.findings.size(), 1U);
  EXPECT_EQ(health.findings[0].kind, FindingKind::kSlowRun);
  EXPECT_EQ(health.findings[0].subject, "run3");
  EXPECT_NE(health.findings[0].evidence.find("the same hosts are sound in run0 and 3 more"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::compare::health_test
