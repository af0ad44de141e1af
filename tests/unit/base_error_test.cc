#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/warnings.h"

namespace lockstep::base_error_test {
namespace {

TEST(Error, TellsPlaceFieldExpectationHintAndContextInOrder) {
  Error error = Error("unknown communication type 'ALLREDUC'")
                    .at("gpt.txt", 7, 23)
                    .field("forward comm type")
                    .expected("NONE, ALLREDUCE")
                    .hint("did you mean ALLREDUCE?");
  error.add_context("while reading the workload");
  error.add_context("while comparing two runs");
  EXPECT_STREQ(error.what(),
               "gpt.txt:7:23: forward comm type: unknown communication type 'ALLREDUC'\n"
               "  expected: NONE, ALLREDUCE\n"
               "  hint: did you mean ALLREDUCE?\n"
               "  while reading the workload\n"
               "  while comparing two runs");
  EXPECT_EQ(error.code(), ExitCode::kBadInput);
}

TEST(Error, NoTerminalObeysWhatItQuotes) {
  const Error error = Error("'\x1b[2J' is no number").at("a\nlockstep: b", 1).hint("\x07");
  EXPECT_STREQ(error.what(), "a\\x0alockstep: b:1: '\\x1b[2J' is no number\n  hint: \\x07");
}

TEST(Error, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(Error("no").what(), "no");
  EXPECT_STREQ(Error("no").at("f").what(), "f: no");
  EXPECT_STREQ(Error("no").at("f", 3).what(), "f:3: no");
  EXPECT_STREQ(Error("no").field("rate").what(), "rate: no");
}

TEST(Error, TheInnermostPlaceStays) {
  Error inner = Error("no").at("inner.txt", 3);
  inner.locate("outer.txt", 9);
  EXPECT_STREQ(inner.what(), "inner.txt:3: no");
  Error nowhere("no");
  nowhere.locate("outer.txt", 9);
  EXPECT_STREQ(nowhere.what(), "outer.txt:9: no");
}

TEST(Error, WithContextPassesValuesAndMarksErrors) {
  EXPECT_EQ(with_context("while adding", [] { return 2 + 2; }), 4);
  try {
    with_context("while reading a.txt",
                 [] { throw Error("no ns-3", ExitCode::kMissingPart).at("x"); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x: no ns-3\n  while reading a.txt");
    EXPECT_EQ(error.code(), ExitCode::kMissingPart);
  }
}

TEST(Check, ABrokenInvariantNamesItsPlaceAndIsNoInputError) {
  EXPECT_NO_THROW(LOCKSTEP_CHECK(1 + 1 == 2, "arithmetic"));
  try {
    LOCKSTEP_CHECK(1 + 1 == 3, "sum " + std::to_string(2));
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::EndsWith("broken invariant (1 + 1 == 3): sum 2"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("base_error_test.cc:"));
  }
}

TEST(Warnings, CountsRepeatsOnceAndAllOfThem) {
  Warnings warnings;
  warnings.add("odd header");
  warnings.add("blank line");
  warnings.add("odd header");
  ASSERT_EQ(warnings.entries().size(), 2U);
  EXPECT_EQ(warnings.entries()[0].text, "odd header");
  EXPECT_EQ(warnings.entries()[0].count, 2);
  EXPECT_EQ(warnings.entries()[1].count, 1);
  EXPECT_EQ(warnings.total(), 3);
}

TEST(Warnings, KeepsABoundedNumberOfTexts) {
  Warnings warnings;
  for (int i = 0; i < 1000; ++i) {
    warnings.add("line " + std::to_string(i));
  }
  EXPECT_EQ(warnings.entries().size(), Warnings::kMaxTexts);
  EXPECT_EQ(warnings.total(), 1000);
}

}  // namespace
}  // namespace lockstep::base_error_test
