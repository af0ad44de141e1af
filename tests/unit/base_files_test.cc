#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "tests/support/run.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using ::testing::StartsWith;

std::string problem_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string read(const std::string& path) { return std::string(FileText(path).view()); }

auto files_in(const ScratchFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(AtomicFile, ReplacesTheOldFileAtCommitOnly) {
  const ScratchFolder folder;
  write_file(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write("new, ");
  file.write("in parts");
  EXPECT_EQ(read(folder / "a"), "old");
  file.commit();
  EXPECT_EQ(read(folder / "a"), "new, in parts");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(AtomicFile, AnExceptionLeavesTheOldFileAndNoTemporary) {
  const ScratchFolder folder;
  write_file(folder / "a", "old");
  EXPECT_THROW(
      {
        AtomicFile file(folder / "a");
        file.write("half");
        throw Error("something else went wrong");
      },
      Error);
  EXPECT_EQ(read(folder / "a"), "old");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(AtomicFile, SaysWhyAFileCannotBeWritten) {
  const ScratchFolder folder;
  EXPECT_THAT(problem_of([&] { write_file(folder.path(), "x"); }),
              AllOf(StartsWith(folder.path()), HasSubstr("it is a directory")));
  EXPECT_THAT(problem_of([&] { write_file(folder / "no/such/a", "x"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(problem_of([] { write_file("/dev/full", "x"); }),
              StartsWith("/dev/full: cannot write the file: No space left"));
  EXPECT_THAT(problem_of([] { write_file("/dev/full", std::string(1 << 20, 'x')); }),
              HasSubstr("No space left"));
  EXPECT_EQ(files_in(folder), 0);
}

TEST(AtomicFile, WritesADeviceInPlace) {
  EXPECT_EQ(problem_of([] { write_file("/dev/null", "x"); }), "no error");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(FileText, ReadsAFileAndAnEmptyOne) {
  const ScratchFolder folder;
  write_file(folder / "a", std::string("x\0y\n", 4));
  EXPECT_EQ(read(folder / "a"), std::string("x\0y\n", 4));
  write_file(folder / "empty", "");
  EXPECT_EQ(read(folder / "empty"), "");
}

TEST(FileText, SaysWhyAFileCannotBeRead) {
  const ScratchFolder folder;
  EXPECT_THAT(problem_of([&] { read(folder / "none"); }),
              AllOf(StartsWith(folder / "none"), HasSubstr("No such file"), HasSubstr("hint: ")));
  EXPECT_THAT(problem_of([&] { read(folder.path()); }), HasSubstr("is a directory, not a file"));
  write_file(folder / "long", "123456789");
  EXPECT_THAT(problem_of([&] { FileText(folder / "long", 8); }), HasSubstr("larger than 8 B"));
  EXPECT_EQ(problem_of([&] { FileText(folder / "long", 9); }), "no error");
}

TEST(FileText, AnEndlessFileEndsAtTheLimit) {
  EXPECT_THAT(problem_of([] { FileText("/dev/zero", 1 << 20); }), HasSubstr("larger than 1 MiB"));
}

TEST(FileText, DashIsStandardInput) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "from a pipe", 11), 11);
  ::close(ends[1]);
  const int kept = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  ::close(ends[0]);
  EXPECT_EQ(read("-"), "from a pipe");
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
}

TEST(Process, PassesStreamsEnvironmentAndFolder) {
  const ScratchFolder folder;
  const ProcessResult result =
      run_process({"sh", "-c", "cat; echo $WORD; pwd; echo no >&2; exit 3"},
                  {.input = "in ", .folder = folder.path(), .environment = {"WORD=so"}});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "in so\n" + folder.path() + "\n");
  EXPECT_EQ(result.err, "no\n");
}

TEST(Process, KeepsMoreThanAPipeHolds) {
  const ProcessResult result = run_process({"sh", "-c", "head -c 1000000 /dev/zero"});
  EXPECT_EQ(result.out.size(), 1'000'000U);
}

TEST(Process, TellsSignalsMissingProgramsAndTimeouts) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -KILL $$"}).exit_code, 128 + SIGKILL);
  EXPECT_THAT(problem_of([] { run_process({"no-such-program-here"}); }),
              HasSubstr("cannot start no-such-program-here: No such file"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(problem_of([] {
                run_process({"sleep", "60"}, {.environment = {}, .seconds = 1});
              }),
              HasSubstr("sleep did not end within 1 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace lockstep
