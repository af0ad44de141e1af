#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/units.h"

namespace lockstep::base_units_test {
namespace {

using ::testing::HasSubstr;

std::string problem_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Units, TransferTimeIsExactAndRoundsUp) {
  // 9052 B at 400 Gbps: 72416 bits / 0.4 bits per ps = 181040 ps.
  EXPECT_EQ(transfer_time(Bytes(9052), Bandwidth::gbps(400)), Time::ps(181'040));
  // 1 B at 3 bps: 8/3 s = 2.666… s, rounded up.
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth::bits_per_second(3)), Time::ps(2'666'666'666'667));
  EXPECT_EQ(transfer_time(Bytes(0), Bandwidth::gbps(1)), Time());
  EXPECT_THAT(problem_of([] { transfer_time(Bytes(1), Bandwidth()); }),
              HasSubstr("zero bandwidth"));
  // 9e18 B at 1 bps are 7.2e31 ps.
  EXPECT_THAT(problem_of([] {
                transfer_time(Bytes(9'000'000'000'000'000'000), Bandwidth::bits_per_second(1));
              }),
              HasSubstr("left the range"));
}

TEST(Units, ParsesTimes) {
  EXPECT_EQ(parse_time("0"), Time());
  EXPECT_EQ(parse_time("0.000025ms"), Time::ns(25));
  EXPECT_EQ(parse_time("1.5us"), Time::ps(1'500'000));
  EXPECT_EQ(parse_time("17ps"), Time::ps(17));
  EXPECT_EQ(parse_time("600fs"), Time::ps(1));  // nearest
  EXPECT_EQ(parse_time("400fs"), Time::ps(0));
  EXPECT_EQ(parse_time("2min"), Time::us(120'000'000));
  EXPECT_EQ(parse_time("1h"), parse_time("3600s"));
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(parse_bytes("7"), Bytes(7));
  EXPECT_EQ(parse_bytes("64MiB"), Bytes(64 << 20));
  EXPECT_EQ(parse_bytes("1.5KiB"), Bytes(1536));
  EXPECT_EQ(parse_bytes("1kB"), parse_bytes("1KB"));
  EXPECT_EQ(parse_bytes("3GB"), Bytes(3'000'000'000));
  EXPECT_EQ(parse_bytes("2TiB"), Bytes(std::int64_t{2} << 40));
}

TEST(Units, ParsesBandwidths) {
  EXPECT_EQ(parse_bandwidth("400Gbps"), Bandwidth::gbps(400));
  EXPECT_EQ(parse_bandwidth("360GBps"), Bandwidth::gbps(2880));
  EXPECT_EQ(parse_bandwidth("50GB/s"), Bandwidth::gbps(400));
  EXPECT_EQ(parse_bandwidth("50Mb/s"), Bandwidth::bits_per_second(50'000'000));
  EXPECT_EQ(parse_bandwidth("1Gib/s"), Bandwidth::bits_per_second(1 << 30));
  EXPECT_EQ(parse_bandwidth("2.5kbit/s"), Bandwidth::bits_per_second(2500));
}

TEST(Units, RefusesWhatIsNoQuantity) {
  for (const char* text : {"", "us", "1", "-1us", "nan s", "inf", "1us2", "1eus", "1,5us", "0x1us",
                           "1 parsec", "99999999999999999999s"}) {
    EXPECT_THAT(problem_of([&] { parse_time(text); }), HasSubstr("expected: a time such as"))
        << text;
  }
  for (const char* text : {"", "MiB", "-1", "nan", "inf", "1mib", "9300000000GB", "1us"}) {
    EXPECT_THAT(problem_of([&] { parse_bytes(text); }), HasSubstr("expected: a size such as"))
        << text;
  }
  for (const char* text : {"", "Gbps", "400", "400G", "-1bps", "1e400bps", "9300000TBps"}) {
    EXPECT_THAT(problem_of([&] { parse_bandwidth(text); }), HasSubstr("expected: a bandwidth such"))
        << text;
  }
}

// Nothing past the end is looked at (the address sanitizer would tell): the text lies at the very
// end of its memory, and what libstdc++ takes for the beginning of "nan" has no NUL behind it.
TEST(Units, ReadsNothingBeyondTheText) {
  for (const std::string_view text :
       {"n00Gbps", "name1Gbps", "-n", "i", "nan(", "-inf", "-.5Gbps"}) {
    const std::vector<char> exactly(text.begin(), text.end());
    const std::string_view there(exactly.data(), exactly.size());
    EXPECT_THAT(problem_of([&] { parse_bandwidth(there); }),
                HasSubstr("expected: a bandwidth such"))
        << text;
  }
}

TEST(Units, AnAmbiguousPrefixGetsBothReadings) {
  EXPECT_THAT(problem_of([] { parse_bytes("64M"); }),
              HasSubstr("write 64MiB (powers of 1024) or 64MB (of 1000)"));
  EXPECT_THAT(problem_of([] { parse_bytes("8k"); }), HasSubstr("write 8KiB"));
  EXPECT_THAT(problem_of([] { parse_bytes("8K"); }), HasSubstr("or 8kB"));
}

TEST(Units, OverflowIsAnErrorNotAWrap) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(Time::max() + Time::ps(1), Error);
  EXPECT_THROW(Time::ps(-kMax) - Time::ps(2), Error);
  EXPECT_THROW(Time() - Time::ps(std::numeric_limits<std::int64_t>::min()), Error);
  EXPECT_THROW(Time::max() * 2, Error);
  EXPECT_THROW(Time::us(kMax), Error);
  EXPECT_THROW(Time::seconds(1e7), Error);  // 116 days
  EXPECT_THROW(Time::seconds(std::numeric_limits<double>::quiet_NaN()), Error);
  EXPECT_THROW(Bytes(kMax) + Bytes(1), Error);
  EXPECT_THROW(Bytes(kMax) * 2, Error);
  EXPECT_THROW(Bandwidth::gbps(kMax), Error);
  EXPECT_THROW(Bandwidth::bytes_per_second(1e30), Error);
}

TEST(Units, TextForPeople) {
  EXPECT_EQ(to_text(Time()), "0 ps");
  EXPECT_EQ(to_text(Time::ps(999)), "999 ps");
  EXPECT_EQ(to_text(Time::ps(1234)), "1.234 ns");
  EXPECT_EQ(to_text(Time::us(1500)), "1.5 ms");
  EXPECT_EQ(to_text(Time::ps(-2'500'000)), "-2.5 us");
  EXPECT_EQ(to_text(Time::us(1'250'000)), "1.25 s");
  EXPECT_EQ(to_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_text(Bytes(1536)), "1.5 KiB");
  EXPECT_EQ(to_text(Bytes(64 << 20)), "64 MiB");
  EXPECT_EQ(to_text(Bandwidth::gbps(400)), "400 Gbps");
  EXPECT_EQ(to_text(Bandwidth::gbps(12'500)), "12.5 Tbps");
  EXPECT_EQ(to_text(Bandwidth::bits_per_second(12)), "12 bps");
}

}  // namespace
}  // namespace lockstep::base_units_test
