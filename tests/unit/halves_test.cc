#include "analysis/compare/halves.h"

#include <string>

#include <gtest/gtest.h>

namespace lockstep::compare::halves_test {
namespace {

/// Tables of all-reduces on two servers by a preset, of one publisher each.
PhysicalLog log_of(const Preset& preset, int tables, const std::string& source) {
  PhysicalLog log;
  log.names = {"made up"};
  for (int table = 0; table < tables; ++table) {
    CommSetting setting;
    setting.id = "table" + std::to_string(table);
    setting.source = source;
    setting.servers = 2;
    setting.ranks = 2 * preset.system.gpus_per_server;
    log.settings.push_back(setting);
    for (std::int64_t bytes = 1 << 20; bytes <= 1 << 29; bytes *= 2) {
      CommRow row;
      row.op = CommType::kAllReduce;
      row.bytes = Bytes(bytes);
      row.setting = table;
      row.time_s = 1e-6 * static_cast<double>(bytes >> 10);
      log.comms.push_back(row);
    }
  }
  return log;
}

std::vector<ComparedRow> rows_of(const PhysicalLog& log, const CompareWishes& wishes) {
  Warnings none;
  return predict_rows(log, wishes, none);
}

// Of four like tables the second one is twice as slow, and the third jumps at one size: in the
// other half's median that is seen, among its own neighbours only where these are near in size.
TEST(Repeats, TellHowFarLikeMeasurementsAreApart) {
  CompareWishes wishes;
  wishes.preset = preset_named("dgx-a100");
  PhysicalLog log = log_of(*wishes.preset, 4, "");
  for (CommRow& row : log.comms) {
    row.time_s *= row.setting == 1 ? 2 : 1;
  }
  const Repeats repeats = repeats_of(rows_of(log, wishes));
  EXPECT_EQ(repeats.other_half.rows, log.comms.size());
  for (CommSetting& setting : log.settings) {
    setting.id = "all_reduce.log";  // of several folders
  }
  EXPECT_EQ(repeats_of(rows_of(log, wishes)).other_half.rows, log.comms.size());
  // Tables 0 and 2 against the median of 1 and 3, 1.5: +50 %; 1 against 1: -50 %; 3: none.
  EXPECT_NEAR(repeats.other_half.median, 0.5, 1e-9);
  EXPECT_NEAR(repeats.other_half.worst, 0.5, 1e-9);
  EXPECT_EQ(repeats.repeated, log.comms.size());
  EXPECT_NEAR(repeats.within_reach, 0.75, 1e-9);  // three of four tables
  EXPECT_EQ(repeats.own_table.rows, 0U);          // sizes are a factor of two apart
  for (CommRow& row : log.comms) {
    row.bytes = Bytes((std::int64_t{64} << 20) + row.bytes.count() / 64);
    row.time_s = row.setting == 2 && row.bytes.count() > 70'000'000 ? 2e-3 : 1e-3;
  }
  const Repeats near = repeats_of(rows_of(log, wishes));
  EXPECT_EQ(near.own_table.rows, log.comms.size());
  EXPECT_LT(near.own_table.median, 0.05);
  EXPECT_LT(near.own_table.worst, -0.4);
}

// Times of a preset's own rates: it is kept, and the fit that starts from the defaults comes near.
TEST(Halves, AClusterIsAPresetAndAPublisher) {
  CompareWishes wishes;
  wishes.preset = preset_named("dgx-a100");
  PhysicalLog log = log_of(*wishes.preset, 4, "github:some/one:a/b.txt");
  const auto rows = rows_of(log, wishes);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    log.comms[i].time_s = rows[i].predicted.time_us * 1e-6;
  }
  const ByHalves halves = fit_by_halves(rows_of(log, wishes), wishes);
  ASSERT_EQ(halves.systems.size(), 1U);
  const HalvesLine& line = halves.systems[0];
  EXPECT_EQ(line.system, "dgx-a100 (one)");
  EXPECT_EQ(line.tables, 4U);
  EXPECT_EQ(line.kept, 2U);
  EXPECT_EQ(line.after.rows, log.comms.size());
  EXPECT_LT(line.after.worst, 1e-6);
  EXPECT_LT(line.from_defaults.p90, 0.05);
  EXPECT_NEAR(line.repeats.other_half.worst, 0, 1e-9);
  EXPECT_TRUE(
      fit_by_halves(rows_of(log_of(*wishes.preset, 3, ""), wishes), wishes).systems.empty());
}

}  // namespace
}  // namespace lockstep::compare::halves_test
