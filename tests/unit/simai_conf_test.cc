#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/network/flow/transport_terms.h"
#include "simulator/network/packet_engine_simai_conf.h"
#include "topologies/topology_file.h"

namespace lockstep::simai_conf_test {
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

TEST(SimaiConf, LeavesWhatItDoesNotName) {
  Warnings warnings;
  PacketOptions options = simai_packet_options();
  apply_simai_conf("RP_TIMER 300\n", "a.conf", options, warnings);
  EXPECT_EQ(options.congestion_attributes.at("IncreaseInterval"), "300us");
  EXPECT_EQ(options.congestion_attributes.at("AlphaInterval"), "1us");  // SimAI's, as before
  apply_simai_conf("CC_MODE 3\nU_TARGET 0.9\n", "a.conf", options, warnings);
  EXPECT_EQ(options.congestion, "hpcc");
  EXPECT_EQ(options.congestion_attributes.at("Target"), "0.9");
  EXPECT_EQ(options.congestion_attributes.at("Stages"), "0");  // SimAI's
}

// Whichever congestion control runs has the parameters that SimAI ships for it, and those of the
// file, even where it is chosen afterwards.
TEST(SimaiConf, EachCongestionControlHasItsParameters) {
  const std::string shipped =
      "ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 900\n"
      "EWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mbps\nRATE_HAI 100Mbps\n"
      "MIN_RATE 100Mbps\nDCTCP_RATE_AI 1Gbps\nU_TARGET 0.95\nMI_THRESH 0\nVAR_WIN 1\n";
  for (const char* mode : {"1", "3", "7", "8"}) {
    PacketOptions all = read(fmt::format("{}CC_MODE {}\n", shipped, mode));
    PacketOptions none = read(fmt::format("CC_MODE {}\n", mode));
    EXPECT_EQ(all.congestion_attributes.size(), none.congestion_attributes.size());
    for (const auto& [name, value] : all.congestion_attributes) {
      const std::string& other = none.congestion_attributes.at(name);
      EXPECT_TRUE(value == other || parse_bandwidth(value) == parse_bandwidth(other)) << name;
    }
    PacketOptions chosen = simai_packet_options();
    choose_congestion(chosen, none.congestion);
    EXPECT_EQ(chosen.congestion_attributes, none.congestion_attributes) << mode;
  }
  PacketOptions options = read("CC_MODE 1\nRATE_HAI 200Mbps\n");
  choose_congestion(options, "timely");
  EXPECT_EQ(options.congestion_attributes.at("HyperIncrease"), "200000000bps");
  EXPECT_EQ(options.congestion_attributes.at("AdditiveIncrease"), "50Mbps");
  choose_congestion(options, "swift");  // SimAI has none
  EXPECT_TRUE(options.congestion_attributes.empty());
}

// 42 B of in-band telemetry with HPCC, echoed by ACKs; 8 B with TIMELY, for which the padding of
// ACKs to 60 B has room.
TEST(SimaiConf, TelemetryIsOnTheWire) {
  const auto sizes = [](const PacketOptions& options) {
    return options.fabric.at("Header") + "+" + options.fabric.at("AckSize");
  };
  EXPECT_EQ(sizes(read("CC_MODE 1\n")), "52+60");
  EXPECT_EQ(sizes(read("CC_MODE 3\n")), "94+92");
  EXPECT_EQ(sizes(read("CC_MODE 7\n")), "60+60");
  EXPECT_EQ(sizes(read("CC_MODE 8\n")), "52+60");
  EXPECT_EQ(sizes(read("CC_MODE 10\n")), "94+92");
  PacketOptions options = read("CC_MODE 3\n");
  choose_congestion(options, "dctcp");
  EXPECT_EQ(sizes(options), "52+60");
  PacketOptions plain;  // the default flavour has its own
  choose_congestion(plain, "hpcc");
  EXPECT_TRUE(plain.fabric.empty());
}

TEST(SimaiConf, OfTwoLinesTheLastHolds) {
  EXPECT_FALSE(read("HAS_WIN 0\nHAS_WIN 1\n").fabric.contains("Window"));
  EXPECT_TRUE(read("HAS_WIN 1\nHAS_WIN 0\n").fabric.contains("Window"));
  EXPECT_TRUE(read("LINK_DOWN 200 2 4\nLINK_DOWN 0 0 0\n").faults.empty());
}

// A unit, or whatever else follows a value, is not passed over.
TEST(SimaiConf, AKeyHasItsValuesAndNoMore) {
  EXPECT_THAT(error_of("CC_MODE 1\nRP_TIMER 900 ns\n"),
              HasSubstr("a.conf:2: RP_TIMER: 2 values\n  expected: one value"));
  EXPECT_THAT(error_of("BUFFER_SIZE 1 KiB\n"), HasSubstr("BUFFER_SIZE: 2 values"));
  EXPECT_THAT(error_of("CC_MODE 1 9\n"), HasSubstr("CC_MODE: 2 values"));
  EXPECT_THAT(error_of("RATE_AI 50 Mb/s\n"), HasSubstr("RATE_AI: 2 values"));
  EXPECT_THAT(error_of("DATA_RATE 50 Mb/s\n"), HasSubstr("DATA_RATE: 2 values"));
  EXPECT_THAT(error_of("LINK_DOWN 0 0 0 0\n"), HasSubstr("LINK_DOWN: 4 values"));
  EXPECT_THAT(error_of("LINK_DOWN 0 0\n"), HasSubstr("expected: 3 values"));
  for (const char* key : {"PAUSE_TIME", "GLOBAL_T", "PINT_PROB", "MON_START", "FAST_REACT"}) {
    EXPECT_THAT(error_of(fmt::format("{} banana\n", key)), HasSubstr("'banana' cannot be")) << key;
    EXPECT_THAT(error_of(fmt::format("{} 1 us\n", key)), HasSubstr("2 values")) << key;
  }
}

std::string warnings_of(std::string_view text) {
  Warnings warnings;
  read(text, &warnings);
  std::string all;
  for (const Warnings::Entry& entry : warnings.entries()) {
    all += entry.text + "\n";
  }
  return all;
}

const PacketOptions::EcnRow& row_of(const PacketOptions& options, int gbps) {
  return *std::ranges::find(options.ecn, Bandwidth::gbps(gbps), &PacketOptions::EcnRow::rate);
}

// A map that is missing is SimAI's; a rate that is missing in a map has 0 there, and is told.
TEST(SimaiConf, MapsThatAreNotComplete) {
  const PacketOptions kmax = read("KMAX_MAP 1 100000000000 500\n");
  EXPECT_EQ(row_of(kmax, 100).kmin, Bytes(400'000));
  EXPECT_EQ(row_of(kmax, 100).kmax, Bytes(500'000));
  EXPECT_EQ(row_of(kmax, 100).pmax, 0.2);
  EXPECT_EQ(row_of(kmax, 400).kmax, Bytes());
  EXPECT_EQ(warnings_of("CC_MODE 1\nKMAX_MAP 1 100000000000 500\n"),
            "a.conf:2: KMAX_MAP has no row for 25 Gbps, 50 Gbps, 200 Gbps, 400 Gbps, 1600 Gbps, "
            "which the other maps have: 0 there, as in SimAI\n");
  EXPECT_THAT(warnings_of("PMAX_MAP 1 800000000000 0.5\nKMIN_MAP 1 800000000000 100\n"),
              HasSubstr("a.conf: there is no KMAX_MAP, and SimAI's own has no row for 800 Gbps"));
  EXPECT_EQ(warnings_of("KMIN_MAP 1 100000000000 9\nKMAX_MAP 1 100000000000 8\n"
                        "PMAX_MAP 1 100000000000 0.5\n"),
            "a.conf:1: KMIN_MAP: at 100 Gbps marking begins at 9 kB, above the 8 kB where all is "
            "marked: all is marked above 9 kB\n");
  EXPECT_EQ(warnings_of("KMIN_MAP 1 100000000000 8\nKMAX_MAP 1 100000000000 9\n"
                        "PMAX_MAP 1 100000000000 0.5\n"),
            "");
}

TEST(SimaiConf, IntervalsAreAboveZeroAndCountsWhole) {
  EXPECT_THAT(error_of("ALPHA_RESUME_INTERVAL 0\n"), HasSubstr("ALPHA_RESUME_INTERVAL: '0'"));
  EXPECT_THAT(error_of("CC_MODE 1.9\n"), HasSubstr("a whole number from 0 to 1000"));
  EXPECT_THAT(error_of("ENABLE_QCN 0.5\n"), HasSubstr("a whole number from 0 to 1"));
}

// An ACK interval is in bytes: packets of another size, other intervals.
TEST(SimaiConf, AckIntervalsFollowThePacketsSize) {
  PacketOptions options = read("L2_ACK_INTERVAL 9000\n");
  EXPECT_EQ(options.fabric.at("AckInterval"), "1");  // of SimAI's 9000 B
  options.fabric["Payload"] = "1000";
  take_ack_bytes(options);
  EXPECT_EQ(options.fabric.at("AckInterval"), "9");
  options.fabric.erase("Payload");
  take_ack_bytes(options);
  EXPECT_EQ(options.fabric.at("AckInterval"), "3");  // of the fabric's own 4096 B
}

// The keys of the SimAI.conf that comes with SimAI, on the flow engine: all of them mean something
// there or change nothing.
TEST(SimaiConf, TheFlowEngineTakesAllKeys) {
  const Topology topology = topology_from("single-switch:g=4,gps=1,nsps=0");
  for (const char* mode : {"0", "1", "3", "7", "8", "10"}) {
    const PacketOptions options = read(fmt::format(
        "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 0\nPACKET_PAYLOAD_SIZE 9000\nCC_MODE {}\n"
        "ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\n"
        "RP_TIMER 900\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\n"
        "RATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\n"
        "ERROR_RATE_PER_LINK 0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\n"
        "L2_BACK_TO_ZERO 0\nHAS_WIN 1\nGLOBAL_T 0\nVAR_WIN 1\nFAST_REACT 1\n"
        "U_TARGET 0.95\nMI_THRESH 0\nINT_MULTI 1\nMULTI_RATE 0\n"
        "SAMPLE_FEEDBACK 0\nPINT_LOG_BASE 1.05\nPINT_PROB 1.0\nRATE_BOUND 1\n"
        "ACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\nENABLE_TRACE 1\nBUFFER_SIZE 32\n",
        mode));
    TransportTerms transport;
    ASSERT_NO_THROW(transport = transport_of(options, topology, Bytes(9000))) << mode;
    EXPECT_FALSE(transport.pfc_dynamic);
    EXPECT_EQ(transport.pfc_threshold, Bytes());
    EXPECT_EQ(transport.ack_interval, 1);
  }
  EXPECT_TRUE(
      transport_of(read("USE_DYNAMIC_PFC_THRESHOLD 1\n"), topology, Bytes(9000)).pfc_dynamic);
}

TEST(SimaiConf, ModesOfCongestionControl) {
  EXPECT_EQ(read("CC_MODE 3\n").congestion, "hpcc");
  EXPECT_EQ(read("CC_MODE 7\n").congestion, "timely");
  EXPECT_EQ(read("CC_MODE 8\n").congestion, "dctcp");
  EXPECT_EQ(read("CC_MODE 0\n").congestion, "none");
}

TEST(SimaiConf, WarnsOfWhatItDoesNotKnowOrModel) {
  Warnings of_mode;
  EXPECT_EQ(read("CC_MODE 5\n", &of_mode).congestion, "none");
  ASSERT_EQ(of_mode.entries().size(), 1U);
  EXPECT_THAT(of_mode.entries()[0].text, HasSubstr("CC_MODE 5 is no congestion control"));
  Warnings warnings;
  read("NEW_KEY 3\nFAST_REACT 0\nCC_MODE 3\n", &warnings);
  ASSERT_EQ(warnings.entries().size(), 2U);
  EXPECT_THAT(warnings.entries()[0].text, HasSubstr("unknown key NEW_KEY"));
  EXPECT_THAT(warnings.entries()[1].text, HasSubstr("FAST_REACT 0"));
  Warnings none;  // DCQCN has no use for it
  read("FAST_REACT 0\nINT_MULTI 4\n", &none);
  EXPECT_EQ(none.total(), 0);
}

TEST(SimaiConf, RecoveryAndThresholds) {
  Warnings warnings;
  const PacketOptions options =
      read("L2_BACK_TO_ZERO 1\nL2_CHUNK_SIZE 8000\nUSE_DYNAMIC_PFC_THRESHOLD 0\n", &warnings);
  EXPECT_EQ(options.fabric.at("Recovery"), "GoBackToZero");
  EXPECT_EQ(options.fabric.at("RecoveryChunk"), "8000");
  EXPECT_EQ(options.fabric.at("DynamicThreshold"), "false");
  EXPECT_EQ(read("L2_BACK_TO_ZERO 0\n").fabric.at("Recovery"), "GoBackN");
  EXPECT_EQ(read("USE_DYNAMIC_PFC_THRESHOLD 1\n").fabric.at("DynamicThreshold"), "true");
  EXPECT_EQ(warnings.total(), 0);
}

// Every key that SimAI 1.6 ships or accepts is known.
TEST(SimaiConf, KnowsAllKeys) {
  Warnings warnings;
  read(
      "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE 9000\nCC_MODE 1\n"
      "ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 900\n"
      "EWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\n"
      "MIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\nERROR_RATE_PER_LINK 0\nL2_CHUNK_SIZE 4000\n"
      "L2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\nHAS_WIN 1\nGLOBAL_T 0\nVAR_WIN 1\nFAST_REACT 1\n"
      "U_TARGET 0.95\nMI_THRESH 0\nINT_MULTI 1\nMULTI_RATE 0\nSAMPLE_FEEDBACK 0\n"
      "PINT_LOG_BASE 1.05\nPINT_PROB 1.0\nRATE_BOUND 1\nACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\n"
      "ENABLE_TRACE 1\nBUFFER_SIZE 32\nSIMULATOR_STOP_TIME 40.0\nMON_START 0\nMON_END 20000\n"
      "QP_MON_INTERVAL 100\nQLEN_MON_INTERVAL 10000\nBW_MON_INTERVAL 10000\nPAUSE_TIME 5\n"
      "DATA_RATE 1\nLINK_DELAY 1\nNIC_TOTAL_PAUSE_TIME 1\n",
      &warnings);
  EXPECT_EQ(warnings.total(), 0);
}

TEST(SimaiConf, LinkDownIsAFaultFromTwoSecondsOn) {
  const PacketOptions options = read("LINK_DOWN 10 1 2\n");
  ASSERT_EQ(options.faults.size(), 1U);
  EXPECT_EQ(options.faults[0].a, NodeId(1));
  EXPECT_EQ(options.faults[0].b, NodeId(2));
  EXPECT_EQ(options.faults[0].from, Time::us(2000010));
  EXPECT_EQ(options.faults[0].until, Time::max());
  EXPECT_EQ(options.faults[0].loss, 1);
  EXPECT_EQ(options.faults[0].file, "a.conf");
  EXPECT_EQ(options.faults[0].line, 1U);
  EXPECT_EQ(options.rerouting, Time());
  EXPECT_TRUE(read("LINK_DOWN 0 0 0\n").faults.empty());
}

TEST(SimaiConf, SaysWhichLineIsWrong) {
  EXPECT_THAT(error_of("CC_MODE 1\nEWMA_GAIN 2\n"),
              HasSubstr("a.conf:2: EWMA_GAIN: '2' cannot be"));
  EXPECT_THAT(error_of("EWMA_GAIN\n"), HasSubstr("expected: one value"));
  EXPECT_THAT(error_of("KMIN_MAP 2 25000000000 100\n"), HasSubstr("2 rates are announced"));
  EXPECT_THAT(error_of("RATE_AI fast\n"), HasSubstr("a.conf:1: RATE_AI"));
}

}  // namespace
}  // namespace lockstep::simai_conf_test
