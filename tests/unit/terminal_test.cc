#include <gtest/gtest.h>

#include "app/fitted.h"

namespace lockstep::terminal_test {
namespace {

TEST(Terminal, ShortLinesStay) {
  EXPECT_EQ(fitted("", 20), "");
  EXPECT_EQ(fitted("one\n\n  two  three\n", 20), "one\n\n  two  three\n");
  EXPECT_EQ(fitted("12345678901234567890", 20), "12345678901234567890");
}

TEST(Terminal, LongLinesGoOnBelowTheirLastColumn) {
  EXPECT_EQ(fitted("  1 ms  tp 1 pp 2 dp 16, by ring\n  2 ms  x\n", 20),
            "  1 ms  tp 1 pp 2 dp\n"
            "        16, by ring\n"
            "  2 ms  x\n");
  // A column that begins too far to the right is none to go on below.
  EXPECT_EQ(fitted("a much longer first  then two words", 24),
            "a much longer first\n"
            "  then two words");
  EXPECT_EQ(fitted("remedy: links between stages twice as fast", 30),
            "remedy: links between stages\n"
            "  twice as fast");
}

TEST(Terminal, TablesAreSetCloserWhereTheyFitThen) {
  const std::string table =
      "of a rank, whose line is no part of it\n"
      "     stage     weights   time\n"
      "         0         8 B   1 us\n";
  // 28 characters: two blanks before the table and between its columns make it 2 + 5 + 2 + 7 + 2 +
  // 4 = 22.
  EXPECT_EQ(fitted(table, 22),
            "of a rank, whose line\n"
            "  is no part of it\n"
            "  stage  weights  time\n"
            "      0      8 B  1 us\n");
  EXPECT_EQ(fitted(table, 20),
            "of a rank, whose\n"
            "  line is no part of\n"
            "  it\n"
            "  stage weights time\n"
            "      0     8 B 1 us\n");
  // 19 do not suffice for one blank: the lines are folded as they are.
  EXPECT_EQ(fitted("a     b\n1     a long word that goes on\n", 12),
            "a     b\n"
            "1     a long\n"
            "      word\n"
            "      that\n"
            "      goes\n"
            "      on\n");
}

// Else the head would be set closer than the rows below it.
TEST(Terminal, ARuleIsPartOfItsTable) {
  const std::string table =
      "a          b\n"
      "------------\n"
      "1          2\n";
  EXPECT_EQ(fitted(table, 11), table);
}

TEST(Terminal, RowsOfMarkdownAreFoldedBetweenCells) {
  EXPECT_EQ(fitted("| a100 | 1 to 64 MiB | +3.1 % |\n", 24),
            "| a100 | 1 to 64 MiB\n"
            "  | +3.1 % |\n");
}

TEST(Terminal, WordsAndCommandsAreNotCut) {
  EXPECT_EQ(fitted("see /a/very/long/path/of/a/file now", 10),
            "see\n"
            "  /a/very/long/path/of/a/file\n"
            "  now");
  EXPECT_EQ(fitted("lockstep simulate --model llama3-8b", 20),
            "lockstep simulate --model llama3-8b");
}

TEST(Terminal, CountsCharactersNotBytes) {
  EXPECT_EQ(fitted("\u00b5\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5\u00b5 x", 11),
            "\u00b5\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5\u00b5 x");
}

}  // namespace
}  // namespace lockstep::terminal_test
