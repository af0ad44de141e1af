#include "app/whatif/follow_journal.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace lockstep::follow_journal_test {
namespace {

namespace fs = std::filesystem;

const FollowedJob kJob{"job", "0f"};

class FollowJournalTest : public ::testing::Test {
 protected:
  FollowJournalTest()
      : folder_(fs::temp_directory_path() / ("follow-journal-" + std::to_string(::getpid()))),
        path_((folder_ / "follow.jsonl").string()) {
    fs::create_directories(folder_);
  }
  ~FollowJournalTest() override { fs::remove_all(folder_); }

  std::string text() const { return std::string(FileText(path_).view()); }
  void set_text(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  static TraceFile file(int number) { return {"t" + std::to_string(number), 10, number}; }
  static FollowJournal::Step step(std::int64_t number, double slowdown) {
    return {.step = number, .slowdown = slowdown, .pattern = "none"};
  }

  fs::path folder_;
  std::string path_;
};

std::vector<std::string> events(const std::vector<Json>& lines) {
  std::vector<std::string> out;
  for (const Json& line : lines) {
    out.push_back(line.at("event").get<std::string>());
  }
  return out;
}

using Events = std::vector<std::string>;

TEST_F(FollowJournalTest, AlertsAfterSlowStepsInARowAndClearsAfterAsManyOthers) {
  FollowJournal journal(path_, kJob, {.slowdown = 1.2, .steps = 2});
  EXPECT_EQ(events(journal.add_file(file(1), {step(1, 1.3), step(2, 1.0), step(3, 1.2)}, "why")),
            (Events{"step", "step", "step", "file"}));
  // Steps 3 and 4 are the two in a row, across files; the third one raises no second alert.
  const auto lines = journal.add_file(file(2), {step(4, 1.4), step(5, 1.5)}, "why");
  EXPECT_EQ(events(lines), (Events{"step", "alert", "step", "file"}));
  EXPECT_EQ(lines[1].at("step"), 4);
  EXPECT_DOUBLE_EQ(lines[1].at("slowdown").get<double>(), (1.2 + 1.4) / 2);
  EXPECT_EQ(lines[1].at("evidence"), "why");
  EXPECT_EQ(events(journal.add_file(file(3), {step(6, 1.1), step(7, 1.1), step(8, 1.1)}, "")),
            (Events{"step", "step", "clear", "step", "file"}));
  EXPECT_FALSE(journal.state().alerted);
}

TEST_F(FollowJournalTest, CountsAStepOnce) {
  FollowJournal journal(path_, kJob, {.slowdown = 1.2, .steps = 3});
  journal.add_file(file(1), {step(1, 1.3), step(2, 1.3)}, "");
  const auto lines = journal.add_file(file(2), {step(1, 1.3), step(2, 1.3), step(3, 1.0)}, "");
  EXPECT_EQ(events(lines), (Events{"step", "file"}));
  EXPECT_EQ(lines.back().at("known_steps"), 2);
}

TEST_F(FollowJournalTest, CutOffAnywhereItGoesOnAsIfItHadNotBeen) {
  const AlertRule rule{.slowdown = 1.2, .steps = 2};
  const auto write_rest = [&] {
    FollowJournal journal(path_, kJob, rule);
    for (int f = 0; f < 3; ++f) {
      if (!journal.has(file(f))) {
        journal.add_file(file(f), {step(2 * f, 1.3), step(2 * f + 1, f == 1 ? 1.0 : 1.25)}, "x");
      }
    }
    if (!journal.has(file(9))) {
      journal.add_refused(file(9), "no rows");
    }
  };
  write_rest();
  const std::string whole = text();
  // Every byte of the text is a place to be cut off at; flushing to disk makes all of them slow.
  for (std::size_t length = 0; length <= whole.size(); length += length % 13 == 0 ? 1U : 12U) {
    set_text(whole.substr(0, length));
    write_rest();
    ASSERT_EQ(text(), whole) << "cut off after " << length << " bytes";
  }
}

TEST_F(FollowJournalTest, OnlyOneFollows) {
  const FollowJournal journal(path_, kJob, {});
  EXPECT_THROW(FollowJournal(path_, kJob, {}), Error);
}

TEST_F(FollowJournalTest, RefusesWhatIsNoJournalAndLeavesItAlone) {
  for (const std::string wrong :
       {"some text\n", "{\"event\":\"step\"}\n",
        "{\"event\":\"journal\",\"schema\":\"lockstep-follow/1\",\"trial_name\":\"other\"}\n",
        "{\"event\":\"journal\",\"schema\":\"lockstep-follow/1\",\"trial_name\":\"job\"}\n[]\n",
        // found by fuzzing: a number that no integer holds
        "{\"event\":\"journal\",\"schema\":\"lockstep-follow/1\",\"trial_name\":\"job\"}\n"
        "{\"event\":\"refused\",\"file\":\"t.csv\",\"bytes\":3,\"modified_ns\":1e30}\n"}) {
    set_text(wrong);
    EXPECT_THROW(FollowJournal(path_, kJob, {}), Error) << wrong;
    EXPECT_EQ(text(), wrong);
  }
}

// The same steps under another layout of the job are others; journals of earlier versions name no
// meta file.
TEST_F(FollowJournalTest, RefusesThatOfAnotherMetaFile) {
  { FollowJournal(path_, kJob, {}).add_file(file(1), {step(1, 1.3)}, ""); }
  const std::string before = text();
  try {
    FollowJournal(path_, {"job", "f0"}, {});
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("meta file that says something else"),
              std::string::npos);
  }
  EXPECT_EQ(text(), before);
  EXPECT_TRUE(FollowJournal(path_, kJob, {}).has_step(1));
  set_text("{\"event\":\"journal\",\"schema\":\"lockstep-follow/1\",\"trial_name\":\"job\"}\n");
  EXPECT_NO_THROW(FollowJournal(path_, kJob, {}));
}

}  // namespace
}  // namespace lockstep::follow_journal_test
