#include "simulator/network/flow/window_limit.h"

#include <gtest/gtest.h>

namespace lockstep::window_limit_test {
namespace {

// 400 Gbps, packets of 4096 + 62 B: 83160 ps. One link of 500 ns, ACKs of 60 B (1200 ps): a round
// trip takes 83160 + 500000 + 1200 + 500000 ps.
constexpr Time kPacket = Time::ps(83160), kRoundTrip = Time::ps(1084360);

WindowLimit limit(std::int64_t window, std::int64_t ack_interval) {
  return {Bytes(window), Bytes(4096), ack_interval, kPacket, kRoundTrip, Time()};
}

TEST(WindowLimit, AnAckForEachPacket) {
  const WindowLimit four = limit(4 * 4096, 1);
  EXPECT_FALSE(four.limits(4));
  EXPECT_TRUE(four.limits(5));
  for (const std::int64_t n : {5, 8, 9, 11, 1000, 1'000'003}) {
    const Time start = kRoundTrip * ((n - 1) / 4) + kPacket * ((n - 1) % 4);
    EXPECT_EQ(four.last_packet(n).start, start) << n;
    EXPECT_EQ(four.sender_time(n, 1), start + kPacket) << n;
  }
  EXPECT_NEAR(four.steady_rate(), 4 / kRoundTrip.seconds(), 1);
}

TEST(WindowLimit, ABytesMoreIsAPacketMore) {
  EXPECT_EQ(limit(4 * 4096 + 1, 1).last_packet(11).start, limit(5 * 4096, 1).last_packet(11).start);
}

// 14 packets are more than a round trip: 13.04.
TEST(WindowLimit, AWindowOfARoundTripIsNone) {
  EXPECT_TRUE(limit(13 * 4096, 1).limits(1'000'000));
  EXPECT_FALSE(limit(14 * 4096, 1).limits(1'000'000));
  EXPECT_EQ(limit(14 * 4096, 1).sender_time(1000, 1), kPacket * 1000);
}

// w = 10, k = 4: acknowledged are 4 packets at a time, so 8 are sent in a round trip and what the
// phase costs, (k - 1 - w mod k) packets: 4 floor(10 / 4) = 8 in A + 1 tau.
TEST(WindowLimit, AnAckForFourPackets) {
  const WindowLimit ten = limit(10 * 4096, 4);
  EXPECT_NEAR(ten.steady_rate(), 8 / (kRoundTrip + kPacket).seconds(), 1);
  // The first round: packet 10 waits for the ACK of packet 3.
  EXPECT_EQ(ten.last_packet(11).start, kPacket * 3 + kRoundTrip);
  EXPECT_EQ(ten.last_packet(11).wait, kPacket * 3 + kRoundTrip - kPacket * 10);
}

// A window of one packet with an ACK for every 16th: the packet that fills it asks for its own.
TEST(WindowLimit, AWindowBelowTheIntervalAsks) {
  EXPECT_EQ(limit(4096, 16).last_packet(100).start, kRoundTrip * 99);
}

}  // namespace
}  // namespace lockstep::window_limit_test
