#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/sweep/coordinator.h"
#include "app/sweep/journal.h"
#include "app/sweep/sweep_table.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "tests/support/fake_crew.h"
#include "tests/support/run.h"

namespace lockstep::sweep_rows_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::ScratchFolder;

IsolatedResult printed(std::string out) {
  IsolatedResult result;
  result.out = std::move(out);
  return result;
}

TEST(SweepRow, TakesScalarsByDottedKey) {
  const Json document = Json::parse(
      R"({"a": 1, "b": {"c": 2.5, "cpu_s": 3}, "d": [{"e": 4}], "f": "t", "g": null, "search_cpu_s": 1})");
  EXPECT_THAT(scalars_of(document, {}),
              ElementsAre(Pair("a", 1), Pair("b.c", 2.5), Pair("f", "t")));
  EXPECT_THAT(scalars_of(document, {"d.0.e", "a", "d.1.e", "d"}),
              ElementsAre(Pair("d.0.e", 4), Pair("a", 1), Pair("d", R"([{"e":4}])")));
}

TEST(SweepRow, OutputThatIsNoJsonIsABug) {
  EXPECT_EQ(make_row(3, printed("hello"), {}).ending, Ending::kBug);
  EXPECT_EQ(make_row(3, printed("{}"), {}).ending, Ending::kDone);
}

TEST(SweepRow, ALineComesBackEqualAndATornOneDoesNot) {
  SweepRow row = make_row(5, printed(R"({"x": 0.1, "y": "a,\"b", "z": true})"), {});
  row.rank = 2;
  row.wall_s = 0.25;
  const std::string line = to_line(row);
  const auto back = row_of_line(line);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_line(*back), line);
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(row_of_line(line.substr(0, size)).has_value()) << size;
  }
  std::string changed = line;
  changed[line.find("0.1") + 2] = '2';
  EXPECT_FALSE(row_of_line(changed).has_value());
}

TEST(SweepJournal, GoesOnAfterATornLine) {
  const ScratchFolder scratch;
  const std::string path = scratch / "journal.jsonl";
  {
    SweepJournal journal(path, "abc", 10);
    journal.add(make_row(1, printed(R"({"x": 1})"), {}));
    journal.add(make_row(2, printed(R"({"x": 2})"), {}));
  }
  const std::string whole(FileText(path).view());
  write_file(path, whole.substr(0, whole.size() - 7));  // killed in the middle of a line
  {
    SweepJournal journal(path, "abc", 10);
    EXPECT_EQ(journal.damaged(), 1);
    EXPECT_EQ(journal.rows().size(), 1U);
    journal.add(make_row(2, printed(R"({"x": 3})"), {}));
  }
  const SweepJournal journal(path, "abc", 10);
  ASSERT_EQ(journal.rows().size(), 2U);
  EXPECT_THAT(journal.rows().at(2).outputs, ElementsAre(Pair("x", 3)));
}

TEST(SweepJournal, RefusesAnotherGridAndASecondWriter) {
  const ScratchFolder scratch;
  const std::string path = scratch / "journal.jsonl";
  const SweepJournal first(path, "abc", 10);
  EXPECT_THROW(SweepJournal(path, "abc", 10), Error);  // it is in use
  const std::string other = scratch / "other.jsonl";
  { const SweepJournal journal(other, "abc", 10); }
  EXPECT_THROW(SweepJournal(other, "abd", 10), Error);
  EXPECT_THROW(SweepJournal(other, "abc", 11), Error);
}

// 1,000 ranks that answer at once: each point is computed once, and none waits for a letter with
// more than one further point in hand.
TEST(SweepCoordinator, HandsEachPointOutOnce) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid("command: simulate\naxes: [{x: {seeds: 5000}}]\n", "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", "", grid.size());
  SweepRunner runner(0);
  testing::FakeCrew crew(1000);
  SweepCoordinator coordinator(grid, runner, &crew, journal, [&](std::int64_t point) {
    SweepTask task = sweep_task(grid, point, "out", false);
    task.command.arguments = {"--version"};  // for those of rank 0 itself
    return task;
  });
  std::vector<std::int64_t> points(static_cast<std::size_t>(grid.size()));
  std::iota(points.begin(), points.end(), 0);
  EXPECT_TRUE(coordinator.run(points, [](std::int64_t) { return true; }));
  EXPECT_EQ(journal.rows().size(), 5000U);
  EXPECT_EQ(crew.most_in_hand(), 2);
  std::size_t here = 0;
  for (const auto& [point, row] : journal.rows()) {
    const auto sent = crew.times_sent().find(point);
    here += row.rank == 0 ? 1 : 0;
    EXPECT_EQ(sent == crew.times_sent().end() ? 0 : sent->second, row.rank == 0 ? 0 : 1) << point;
  }
  EXPECT_GE(here, 1U);
}

TEST(SweepCoordinator, StopsWhenToldTo) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid("command: simulate\naxes: [{x: {seeds: 50}}]\n", "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", "", grid.size());
  SweepRunner runner(0);
  SweepCoordinator coordinator(grid, runner, nullptr, journal, [&](std::int64_t point) {
    SweepTask task = sweep_task(grid, point, "out", false);
    task.command.arguments = {"--version"};
    return task;
  });
  EXPECT_FALSE(coordinator.run({3, 4, 5, 6}, [](std::int64_t done) { return done < 2; }));
  EXPECT_EQ(journal.rows().size(), 2U);
}

TEST(SweepTable, HasInputsThenOutputsAndTypes) {
  const Grid grid = parse_grid(R"(
command: simulate
axes: [{nic: [100Gbps, 400Gbps]}, {tp: [1, 2]}]
flags: {nvls: true, label: "a,b"}
)",
                               "g.yaml");
  std::map<std::int64_t, SweepRow> rows;
  rows[0] = make_row(0, printed(R"({"t": 1.5, "n": 3, "tp": 9})"), {});
  rows[2] = make_row(2, printed(R"({"n": 4, "late": "x"})"), {});
  rows[3].point = 3;
  rows[3].ending = Ending::kTimedOut;
  rows[3].exit_code = 137;
  rows[3].reason = "not done within 1 s";
  EXPECT_EQ(to_csv(sweep_table(grid, rows)),
            "point,nic,tp,nvls,label,ending,exit_code,reason,t,n,result.tp,late\n"
            "0,100Gbps,1,true,\"a,b\",done,0,,1.5,3,9,\n"
            "2,400Gbps,1,true,\"a,b\",done,0,,,4,,x\n"
            "3,400Gbps,2,true,\"a,b\",timed-out,137,not done within 1 s,,,,\n");
  EXPECT_EQ(to_csv(sweep_table(grid, {})), "point,ending,exit_code,reason\n");
}

}  // namespace
}  // namespace lockstep::sweep_rows_test
