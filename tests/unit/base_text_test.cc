#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/progress.h"
#include "base/text.h"
#include "tests/support/error_of.h"

namespace lockstep::base_text_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Text, TrimAndSplit) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_THAT(split_blanks("  a \t b\r\n"), ElementsAre("a", "b"));
  EXPECT_THAT(split_blanks(""), IsEmpty());
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Text, WholeNumbers) {
  EXPECT_EQ(to_int("42"), 42);
  EXPECT_EQ(to_int("+42"), 42);
  EXPECT_EQ(to_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"", "+", "-", "+-4", "++4", " 4", "4 ", "4.0", "0x4", "4e2",
                           "9223372036854775808", "four"}) {
    EXPECT_EQ(to_int(text), std::nullopt) << text;
  }
}

TEST(Text, RealNumbers) {
  EXPECT_EQ(to_double("1.5"), 1.5);
  EXPECT_EQ(to_double("+1e-3"), 1e-3);
  EXPECT_EQ(to_double("-0.25"), -0.25);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5", "1.5x", " 1"}) {
    EXPECT_EQ(to_double(text), std::nullopt) << text;
  }
}

TEST(Text, ClosestForgivesASlipOfTheFinger) {
  constexpr std::array<std::string_view, 4> kWords{"simulate", "topology", "doctor", "check"};
  EXPECT_EQ(closest("simulat", kWords), "simulate");  // one letter missing
  EXPECT_EQ(closest("TOPOLGY", kWords), "topology");  // case does not matter
  EXPECT_EQ(closest("chekc", kWords), "check");       // two letters swapped are one slip
  EXPECT_EQ(closest("dcotro", kWords), "doctor");     // two swaps in six letters
  EXPECT_EQ(closest("explode", kWords), "");          // nothing near
  EXPECT_EQ(closest("TOPO", kWords), "topology");     // the only one that begins so
  EXPECT_EQ(closest("to", kWords), "");               // too short for that
  EXPECT_EQ(closest("", kWords), "");
  EXPECT_EQ(closest(std::string(1000, 'x'), kWords), "");
}

TEST(Text, WhatIsNoUtf8IsRefusedWithItsLine) {
  require_utf8("Grüße\n", "f");
  EXPECT_THAT(testing::error_of([] { require_utf8("a: 1\nb: \xff\n", "f"); }),
              ::testing::HasSubstr("f:2: byte \\xff is no UTF-8"));
}

TEST(Text, TellsUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("aé€😀"));
  EXPECT_FALSE(is_utf8("\x1f\x8b"));
  EXPECT_FALSE(is_utf8("a\xC3"));
}

// The examples of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {std::string("\0\xff\xfb\xf0", 4), "AP/78A=="}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  for (const char* wrong : {"Zg", "Zg=", "Z===", "=Zg=", "Zg==Zg==", "Zm9v\n", "Zm-v", "===="}) {
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, PrintableEscapesAndCuts) {
  EXPECT_EQ(printable("a\tb\x01\x7f"), "a\\x09b\\x01\\x7f");
  EXPECT_EQ(printable("Grüße"), "Grüße");
  // No UTF-8: a lone second byte, a first one without it, '/' in two bytes, half a surrogate pair,
  // and beyond U+10FFFF.
  EXPECT_EQ(printable("\x8b!\xc3!"), "\\x8b!\\xc3!");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x8f\xbf\xbf\xf4\x90\x80\x80"), "\xf4\x8f\xbf\xbf\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("abcdef", 4), "abcd…");
  // The cut falls inside the two bytes of 'ü': the letter goes whole.
  EXPECT_EQ(printable("Grüße", 3), "Gr…");
}

TEST(Text, JoinAndLower) {
  constexpr std::array<std::string_view, 3> kWords{"a", "b", "c"};
  EXPECT_EQ(join(kWords, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(to_lower("AllReduce Ü"), "allreduce Ü");
}

TEST(Progress, LineSaysHowFarAndHowLong) {
  // 42 of 100 in 8.7 s: 8.7 * 58 / 42 = 12.01 s are left.
  EXPECT_EQ(Progress::line("simulating", 42, 100, 8.7),
            "simulating   42 % [########            ]  0:12 left");
  EXPECT_EQ(Progress::line("x", 0, 100, 5), "x    0 % [                    ]");
  EXPECT_EQ(Progress::line("x", 1, 2, 3661), "x   50 % [##########          ]  1:01:01 left");
  EXPECT_EQ(Progress::line("x", 7, 5, 1), "x  100 % [####################]  0:00 left");
}

}  // namespace
}  // namespace lockstep::base_text_test
