#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/network/packet_engine_simai_conf.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

PacketOptions read(std::string_view text, Warnings* warnings = nullptr) {
  PacketOptions options = simai_packet_options();
  Warnings ignored;
  apply_simai_conf(text, "a.conf", options, warnings != nullptr ? *warnings : ignored);
  return options;
}

std::string error_of(std::string_view text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SimaiConf, ReadsSizesRatesAndMaps) {
  Warnings warnings;
  const PacketOptions options = read(
      "L2_ACK_INTERVAL 2500\nPACKET_PAYLOAD_SIZE 1000\nBUFFER_SIZE 16\nRATE_AI 50Mb/s\nRP_TIMER "
      "900\n"
      "KMAX_MAP 2 25000000000 400 400000000000 3200\nKMIN_MAP 2 25000000000 100 400000000000 800\n"
      "PMAX_MAP 2 25000000000 0.2 400000000000 0.5\nACK_HIGH_PRIO 1\nMON_START 0\n",
      &warnings);
  EXPECT_EQ(options.fabric.at("Payload"), "1000");
  EXPECT_EQ(options.fabric.at("AckInterval"), "3");  // 2500 B are three packets of 1000 B
  EXPECT_EQ(options.fabric.at("Buffer"), "16777216");
  EXPECT_EQ(options.fabric.at("AckHighPriority"), "true");
  EXPECT_EQ(options.congestion, "dcqcn");
  EXPECT_EQ(options.congestion_attributes.at("AdditiveIncrease"), "50000000bps");
  EXPECT_EQ(options.congestion_attributes.at("IncreaseInterval"), "900us");
  ASSERT_EQ(options.ecn.size(), 2U);
  EXPECT_EQ(options.ecn[1].rate, Bandwidth::gbps(400));
  EXPECT_EQ(options.ecn[1].kmin, Bytes(800'000));
  EXPECT_EQ(options.ecn[1].kmax, Bytes(3'200'000));
  EXPECT_EQ(options.ecn[1].pmax, 0.5);
  EXPECT_EQ(warnings.total(), 0);
}

TEST(SimaiConf, ModesOfCongestionControl) {
  EXPECT_EQ(read("CC_MODE 3\n").congestion, "hpcc");
  EXPECT_EQ(read("CC_MODE 7\n").congestion, "timely");
  EXPECT_EQ(read("CC_MODE 8\n").congestion, "dctcp");
  EXPECT_EQ(read("CC_MODE 0\n").congestion, "none");
}

TEST(SimaiConf, WarnsOfWhatItDoesNotKnowOrModel) {
  Warnings warnings;
  read("NEW_KEY 3\nL2_BACK_TO_ZERO 1\n", &warnings);
  ASSERT_EQ(warnings.entries().size(), 2U);
  EXPECT_THAT(warnings.entries()[0].text, HasSubstr("unknown key NEW_KEY"));
  EXPECT_THAT(warnings.entries()[1].text, HasSubstr("L2_BACK_TO_ZERO"));
}

TEST(SimaiConf, LinkDownIsAFaultFromTwoSecondsOn) {
  const PacketOptions options = read("LINK_DOWN 10 1 2\n");
  ASSERT_EQ(options.faults.size(), 1U);
  EXPECT_EQ(options.faults[0].a, NodeId(1));
  EXPECT_EQ(options.faults[0].b, NodeId(2));
  EXPECT_EQ(options.faults[0].from, Time::us(2000010));
  EXPECT_EQ(options.faults[0].until, Time::max());
  EXPECT_EQ(options.faults[0].loss, 1);
  EXPECT_EQ(options.rerouting, Time());
  EXPECT_TRUE(read("LINK_DOWN 0 0 0\n").faults.empty());
}

TEST(SimaiConf, SaysWhichLineIsWrong) {
  EXPECT_THAT(error_of("CC_MODE 1\nEWMA_GAIN 2\n"),
              HasSubstr("a.conf:2: EWMA_GAIN: '2' cannot be"));
  EXPECT_THAT(error_of("EWMA_GAIN\n"), HasSubstr("expected: at least 1"));
  EXPECT_THAT(error_of("KMIN_MAP 2 25000000000 100\n"), HasSubstr("2 rates are announced"));
  EXPECT_THAT(error_of("RATE_AI fast\n"), HasSubstr("a.conf:1: RATE_AI"));
}

}  // namespace
}  // namespace lockstep
