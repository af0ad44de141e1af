#include "app/step_score/csv_table.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace lockstep::csv_table_test {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(CsvTable, CellsByRowAndColumn) {
  const CsvTable table("model,gpus,time\nA,8,1.5\nB,,\n", "t.csv");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_TRUE(table.has("gpus"));
  EXPECT_FALSE(table.has("tp"));
  EXPECT_EQ(table.text(0, "model"), "A");
  EXPECT_EQ(table.number(0, "time"), 1.5);
  EXPECT_EQ(table.whole(0, "gpus"), 8);
  EXPECT_EQ(table.number(1, "time"), std::nullopt);
  EXPECT_EQ(CsvTable("x\n4096.0\n", "t.csv").whole(0, "x"), 4096);
}

// RFC 4180: commas, line ends and doubled quotes within quotes; lines may end in CR LF, the last
// one in nothing.
TEST(CsvTable, QuotedCells) {
  const CsvTable table("a,b\r\n\"1,\n2\",\"say \"\"x\"\"\"\r\n3,4", "t.csv");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.text(0, "a"), "1,\n2");
  EXPECT_EQ(table.text(0, "b"), "say \"x\"");
  EXPECT_EQ(table.text(1, "b"), "4");
}

// "# GPUs" is a name, as the line has as many cells as the others; a comment has not.
TEST(CsvTable, CommentsStandBeforeTheNames) {
  const CsvTable table("# measured in 2022, by hand, twice\n# GPUs,time\n8,1\n", "t.csv");
  EXPECT_EQ(table.whole(0, "# GPUs"), 8);
}

TEST(CsvTable, ErrorsNameLineAndColumn) {
  EXPECT_THAT(error_of([] { CsvTable("", "t.csv"); }), HasSubstr("t.csv: the table is empty"));
  EXPECT_THAT(error_of([] { CsvTable("a,b\n1,2\n3\n4,5\n", "t.csv"); }),
              HasSubstr("t.csv:3: a row of 1 cells"));
  EXPECT_THAT(error_of([] { CsvTable("a\n\"1\n", "t.csv"); }),
              HasSubstr("t.csv:2: a quote is left open"));
  const CsvTable table("a,b\n1,x\n1.5,2\n", "t.csv");
  EXPECT_THAT(error_of([&] { table.number(0, "b"); }),
              HasSubstr("t.csv:2: b: 'x' is not a number"));
  EXPECT_THAT(error_of([&] { table.whole(1, "a"); }),
              HasSubstr("t.csv:3: a: '1.5' is not a whole number"));
  EXPECT_THAT(error_of([&] { table.text(0, "c"); }), HasSubstr("there is no column 'c'"));
}

}  // namespace
}  // namespace lockstep::csv_table_test
