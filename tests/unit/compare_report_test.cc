// What a comparison of collectives looks like.
#include "report/compare_report.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/picture/stroke_font.h"

namespace lockstep::compare_report_test {
namespace {

/// Two tables of one log, of groups of the same size on one server and on two.
PhysicalLog log_of() {
  PhysicalLog log;
  log.names = {"all_reduce"};
  log.groups = {"tp [0, 1]", "dp [0, 8]"};
  log.members = {{0, 1}, {0, 8}};
  CommSetting setting;
  setting.id = "folder/run.json";
  setting.gpu_type = "H100";
  setting.ranks = 16;
  log.settings = {setting};
  for (const std::int32_t group : {0, 1}) {
    log.comms.push_back({.op = CommType::kAllReduce,
                         .ranks = 2,
                         .group = group,
                         .bytes = Bytes(1 << 20),
                         .time_s = 1e-3,
                         .wrong = group == 1 ? 2.0 : 0.0,
                         .in_place = group == 1});
  }
  return log;
}

CompareReport report_of(const PhysicalLog& log) {
  CompareReport report;
  report.rows = compare::predict_rows(log, report.wishes, report.left_out, &report.notes);
  compare::explain_rows(report.rows, report.wishes, 0.15);
  return report;
}

TEST(CompareReport, GroupsOfOneSizeAreTablesOfTheirOwn) {
  const PhysicalLog log = log_of();
  const std::string text = compare_table(report_of(log));
  EXPECT_NE(text.find("allreduce of tp [0, 1] on 2 GPUs in 1 server,"), std::string::npos) << text;
  EXPECT_NE(text.find("allreduce of dp [0, 8] on 2 GPUs in 2 servers,"), std::string::npos) << text;
  EXPECT_NE(text.find("1048576 bytes in place: "), std::string::npos) << text;
  EXPECT_NE(text.find("1048576 bytes out of place: "), std::string::npos) << text;
  EXPECT_NE(text.find("1 rows came out with wrong elements"), std::string::npos) << text;
  const Json json = parse_json(compare_json(report_of(log)), "compare");
  ASSERT_EQ(json["tables"].size(), 2U);
  EXPECT_EQ(json["tables"][1]["group"], "dp [0, 8]");
  EXPECT_EQ(json["tables"][1]["rows"][0]["wrong"], 2);
}

TEST(CompareReport, PicturesNameTheirLog) {
  const PhysicalLog log = log_of();
  std::size_t named = 0;
  for (const auto& text : compare_picture(report_of(log)).texts) {
    named += text.text == "run.json" ? 1U : 0U;
  }
  EXPECT_EQ(named, 2U);
}

TEST(CompareReport, TheFontHasAllLettersAndDigits) {
  for (char c = '0'; c <= 'z'; ++c) {
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
      EXPECT_FALSE(stroke_glyph(c).strokes.empty()) << c;
    }
  }
}

}  // namespace
}  // namespace lockstep::compare_report_test
