#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace lockstep {
namespace {

TEST(Units, TransferTimeIsExactAndRoundsUp) {
  // 9052 B at 400 Gbps: 72416 bits / 0.4 bits per ps = 181040 ps.
  EXPECT_EQ(transfer_time(Bytes(9052), Bandwidth::gbps(400)), Time::ps(181'040));
  // 1 B at 3 bps: 8/3 s = 2.666… s, rounded up.
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth::bits_per_second(3)), Time::ps(2'666'666'666'667));
}

TEST(Units, ParsesTheFieldsSpellings) {
  EXPECT_EQ(parse_time("0.000025ms"), Time::ns(25));
  EXPECT_EQ(parse_bytes("64MiB"), Bytes(64 << 20));
  EXPECT_EQ(parse_bandwidth("360GBps"), Bandwidth::gbps(2880));
  EXPECT_EQ(parse_bandwidth("50Mb/s"), Bandwidth::bits_per_second(50'000'000));
}

}  // namespace
}  // namespace lockstep
