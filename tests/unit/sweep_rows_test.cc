#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/sweep/coordinator.h"
#include "app/sweep/journal.h"
#include "app/sweep/sweep_table.h"
#include "app/sweep/worker.h"
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

SweepIdentity identity(std::string grid, std::map<std::string, std::string> files = {}) {
  // Point N names the file "N".
  return {.grid = std::move(grid),
          .program = "p",
          .files = std::move(files),
          .uses = [](std::int64_t point, const std::string& file) {
            return std::to_string(point) == file;
          }};
}

std::string refusal_of(const std::string& path, const SweepIdentity& identity) {
  try {
    const SweepJournal journal(path, identity, 10);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SweepRow, TakesScalarsByDottedKey) {
  const Json document = Json::parse(
      R"({"a": 1, "b": {"c": 2.5, "cpu_s": 3}, "d": [{"e": 4}], "f": "t", "g": null, "h": [1],
          "i": [{"j": 1}, {"j": 2}], "command": "lockstep", "search_cpu_s": 1})");
  EXPECT_THAT(scalars_of(document, {}),
              ElementsAre(Pair("a", 1), Pair("b.c", 2.5), Pair("d.0.e", 4), Pair("f", "t")));
  EXPECT_THAT(scalars_of(document, {"i.1.j", "a", "d.1.e", "d"}),
              ElementsAre(Pair("i.1.j", 2), Pair("a", 1), Pair("d", R"([{"e":4}])")));
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
    SweepJournal journal(path, identity("abc"), 10);
    journal.add(make_row(1, printed(R"({"x": 1})"), {}));
    journal.add(make_row(2, printed(R"({"x": 2})"), {}));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 7);  // killed in a line
  {
    SweepJournal journal(path, identity("abc"), 10);
    EXPECT_EQ(journal.damaged(), 1);
    EXPECT_EQ(journal.rows().size(), 1U);
    journal.add(make_row(2, printed(R"({"x": 3})"), {}));
  }
  const SweepJournal journal(path, identity("abc"), 10);
  ASSERT_EQ(journal.rows().size(), 2U);
  EXPECT_THAT(journal.rows().at(2).outputs, ElementsAre(Pair("x", 3)));
}

TEST(SweepJournal, RefusesAnotherGridAndASecondWriter) {
  const ScratchFolder scratch;
  const std::string path = scratch / "journal.jsonl";
  const SweepJournal first(path, identity("abc"), 10);
  EXPECT_THROW(SweepJournal(path, identity("abc"), 10), Error);  // it is in use
  const std::string other = scratch / "other.jsonl";
  { const SweepJournal journal(other, identity("abc"), 10); }
  EXPECT_THROW(SweepJournal(other, identity("abd"), 10), Error);
  EXPECT_THROW(SweepJournal(other, identity("abc"), 11), Error);
}

// Point 1 is done with the file "1", point 2 failed for want of "2".
TEST(SweepJournal, KnowsWhichFilesItsRowsDependOn) {
  const ScratchFolder scratch;
  const std::string path = scratch / "journal.jsonl";
  {
    SweepJournal journal(path, identity("g", {{"1", "a"}}), 10);
    journal.add(make_row(1, printed(R"({"x": 1})"), {}));
    SweepRow failed;
    failed.point = 2;
    failed.ending = Ending::kBadInput;
    journal.add(failed);
  }
  EXPECT_THAT(refusal_of(path, identity("g", {{"1", "b"}})), HasSubstr("with another '1'"));
  EXPECT_THAT(refusal_of(path, identity("h", {{"1", "a"}})), HasSubstr("another grid"));
  SweepIdentity rebuilt = identity("g", {{"1", "a"}});
  rebuilt.program = "q";
  EXPECT_THAT(refusal_of(path, rebuilt), HasSubstr("another build"));
  const SweepIdentity mended = identity("g", {{"1", "a"}, {"2", "c"}, {"9", "of no row"}});
  {
    SweepJournal journal(path, mended, 10);
    EXPECT_EQ(journal.rows().size(), 1U);  // point 2 may be better now
    EXPECT_EQ(journal.damaged(), 0);
    EXPECT_EQ(journal.first_done()->point, 1);
    journal.add(make_row(2, printed(R"({"x": 2})"), {}));
  }
  { EXPECT_EQ(SweepJournal(path, mended, 10).rows().size(), 2U); }
  EXPECT_THAT(refusal_of(path, identity("g", {{"1", "a"}, {"2", "d"}})),
              HasSubstr("with another '2'"));
}

TEST(SweepJournal, IsEmptiedOnlyByWhoHoldsIt) {
  const ScratchFolder scratch;
  const std::string path = scratch / "journal.jsonl";
  {
    SweepJournal first(path, identity("g"), 10);
    first.add(make_row(1, printed("{}"), {}));
    EXPECT_THROW(SweepJournal(path, identity("g"), 10, true), Error);
  }
  { EXPECT_EQ(SweepJournal(path, identity("g"), 10).rows().size(), 1U); }
  EXPECT_EQ(SweepJournal(path, identity("other"), 10, true).rows().size(), 0U);
}

// A rank that is told to end by a signal waits for rank 0 to say so, but not for ever.
TEST(SweepWorker, EndsOnASignal) {
  SweepRunner runner(1, LOCKSTEP_BINARY);
  testing::FakeCrew silent(2);
  EXPECT_FALSE(work(
      runner, silent, [] { return true; }, std::chrono::milliseconds(20)));
}

TEST(Crew, OfAnotherMpiIsAnError) {
  const testing::FakeCrew crew(2);
  EXPECT_NO_THROW(check_crew(crew, {0, 2, ""}));
  EXPECT_THROW(check_crew(crew, {1, 2, "PMI_RANK"}), Error);
  EXPECT_THROW(check_crew(crew, {0, 4, "PMI_RANK"}), Error);
}

// 1,000 ranks that answer at once: each point is computed once, and none waits for a letter with
// more than one further point in hand.
TEST(SweepCoordinator, HandsEachPointOutOnce) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid("command: simulate\naxes: [{x: {seeds: 5000}}]\n", "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", {}, grid.size());
  SweepRunner runner(0, LOCKSTEP_BINARY);
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

/// A coordinator's task that does nothing, where it is rank 0's own.
SweepCoordinator::MakeTask quick_tasks(const Grid& grid) {
  return [&grid](std::int64_t point) {
    SweepTask task = sweep_task(grid, point, "out", false);
    task.command.arguments = {"--version"};
    return task;
  };
}

std::vector<std::int64_t> all_points(const Grid& grid) {
  std::vector<std::int64_t> points(static_cast<std::size_t>(grid.size()));
  std::iota(points.begin(), points.end(), 0);
  return points;
}

// Points 0 to 7 are analytic, 8 to 15 packets: these go first, those of most GPUs before the
// others.
TEST(SweepCoordinator, HandsOutTheLongestFirst) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid(R"(
command: simulate
axes: [{engine: [analytic, packet]}, {gpus: [8, 16, 32, 64, 128, 256, 512, 1024]}]
)",
                               "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", {}, grid.size());
  SweepRunner runner(0, LOCKSTEP_BINARY);
  testing::FakeCrew crew(4);
  SweepCoordinator coordinator(grid, runner, &crew, journal, quick_tasks(grid));
  EXPECT_TRUE(coordinator.run(all_points(grid), [](std::int64_t) { return true; }));
  // 15 is rank 0's own. Rows that all took as long change the order after eight of them.
  ASSERT_GE(crew.order().size(), 6U);
  EXPECT_THAT(std::vector(crew.order().begin(), crew.order().begin() + 6),
              ElementsAre(14, 13, 12, 11, 10, 9));
}

// Rank 1 never answers: it keeps the two points that it has, and the others do all else.
TEST(SweepCoordinator, ASlowRankHoldsUpNobody) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid("command: simulate\naxes: [{x: {seeds: 100}}]\n", "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", {}, grid.size());
  SweepRunner runner(0, LOCKSTEP_BINARY);
  testing::FakeCrew crew(3);
  crew.silence(1);
  SweepCoordinator coordinator(grid, runner, &crew, journal, quick_tasks(grid));
  EXPECT_FALSE(coordinator.run(all_points(grid), [](std::int64_t done) { return done < 98; }));
  EXPECT_EQ(journal.rows().size(), 98U);
  EXPECT_EQ(crew.in_hand(1), 2);
}

TEST(SweepCoordinator, StopsWhenToldTo) {
  const ScratchFolder scratch;
  const Grid grid = parse_grid("command: simulate\naxes: [{x: {seeds: 50}}]\n", "g.yaml");
  SweepJournal journal(scratch / "journal.jsonl", {}, grid.size());
  SweepRunner runner(0, LOCKSTEP_BINARY);
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
  EXPECT_EQ(to_csv(sweep_table(grid, {})), "point,nic,tp,nvls,label,ending,exit_code,reason\n");
}

// 2.20 is another version than 2.2, and 010 no ten; where one value stays a text all of them do.
TEST(SweepTable, KeepsTextsThatNumbersWouldChange) {
  const Grid grid = parse_grid(R"(
command: collective
axes: [{zip: {nccl-version: ["2.18", "2.20", "2.2"], set: ["010", "9", "10"], share: [0.5, 1.25, 2]}}]
)",
                               "g.yaml");
  std::map<std::int64_t, SweepRow> rows;
  for (const std::int64_t point : {0, 1, 2}) {
    rows[point] = make_row(point, printed("{}"), {});
  }
  const Json columns = columns_json(sweep_table(grid, rows));
  EXPECT_EQ(columns[1]["cells"], Json({"2.18", "2.20", "2.2"}));
  EXPECT_EQ(columns[2]["cells"], Json({"010", "9", "10"}));
  EXPECT_EQ(columns[3]["cells"], Json({0.5, 1.25, 2.0}));
}

}  // namespace
}  // namespace lockstep::sweep_rows_test
