#include "app/isolate/nursery.h"

#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/program.h"
#include "base/atomic_file.h"
#include "base/own_program.h"
#include "base/process.h"
#include "base/text.h"
#include "tests/support/run.h"
#include "tests/support/sanitized.h"

namespace lockstep::nursery_test {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
using ::testing::StartsWith;

/// The only child of a process; -1 while it has none.
pid_t child_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  pid_t child = -1;
  return file >> child ? child : -1;
}

pid_t wait_for_child_of(pid_t parent) {
  pid_t child = -1;
  while ((child = child_of(parent)) < 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return child;
}

/// A command that runs until it is ended.
IsolatedTask endless(const ScratchFolder& scratch) {
  write_file(scratch / "meta.yaml", "");
  std::filesystem::create_directories(scratch / "traces");
  return {.arguments = {"whatif", "--follow", scratch / "traces", "--meta",
                        LOCKSTEP_SOURCE_DIR "/tests/data/whatif/two-stages.yaml", "-o",
                        scratch / "out"},
          .folder = {}};
}

/// Whether a process does anything yet: one that has ended may stay in the table until the system's
/// first process gets round to it.
bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z" && state != "X";
}

TEST(Nursery, RunsCommandsOneAfterAnother) {
  Nursery nursery(LOCKSTEP_BINARY);
  const IsolatedResult version = nursery.run({.arguments = {"--version"}, .folder = {}});
  EXPECT_EQ(version.ending, Ending::kDone);
  EXPECT_THAT(version.out, StartsWith("lockstep "));
  EXPECT_EQ(version.err, "");
  EXPECT_GT(version.peak_bytes, 0);
  const IsolatedResult wrong = nursery.run({.arguments = {"explode"}, .folder = {}});
  EXPECT_EQ(wrong.ending, Ending::kBadInput);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.reason, "unknown command 'explode'");
  EXPECT_EQ(wrong.out, "");
}

TEST(Nursery, EndsWhatTakesTooLong) {
  const ScratchFolder scratch;
  Nursery nursery(LOCKSTEP_BINARY);
  IsolatedTask task = endless(scratch);
  task.time_limit = Time::us(100'000);
  const IsolatedResult result = nursery.run(task);
  EXPECT_EQ(result.ending, Ending::kTimedOut);
  EXPECT_EQ(result.reason, "not done within 100 ms");
  EXPECT_EQ(nursery.run({.arguments = {"--version"}, .folder = {}}).ending, Ending::kDone);
}

TEST(Nursery, EndsWhatNeedsTooMuchMemory) {
  if (testing::is_sanitized()) {
    GTEST_SKIP() << "sanitized builds have no limits of memory (memory_limit.h); others run this";
  }
  Nursery nursery(LOCKSTEP_BINARY);
  // A million transfers at once take some 400 MB.
  const IsolatedResult result =
      nursery.run({.arguments = {"collective", "--op", "alltoall", "--size", "1GiB", "--algorithm",
                                 "direct", "--topology", "Spectrum-X:g=1024", "--threads", "1"},
                   .folder = {},
                   .memory_limit = Bytes(64 << 20)});
  EXPECT_EQ(result.ending, Ending::kOutOfMemory) << result.reason << result.err;
  EXPECT_EQ(result.reason, "needs more than 64 MiB of memory");
}

TEST(Nursery, EndsWhatPrintsTooMuch) {
  Nursery nursery(LOCKSTEP_BINARY);
  const IsolatedTask task{
      .arguments = {"topology", "build", "--template", "Spectrum-X", "-g", "64", "-o", "-"},
      .folder = {},
      .output_limit = Bytes(1000)};
  const IsolatedResult result = nursery.run(task);
  EXPECT_EQ(result.ending, Ending::kBadInput);
  EXPECT_THAT(result.reason, HasSubstr("cannot write"));
  EXPECT_LE(result.out.size(), 1000U);
}

TEST(Nursery, ACrashIsAResult) {
  const ScratchFolder scratch;
  Nursery nursery(LOCKSTEP_BINARY);
  nursery.start(endless(scratch));
  const pid_t server = wait_for_child_of(::getpid());
  ::kill(wait_for_child_of(server), SIGABRT);
  const IsolatedResult result = nursery.finish();
  EXPECT_EQ(result.ending, Ending::kCrashed);
  EXPECT_EQ(result.exit_code, 128 + SIGABRT);
  EXPECT_THAT(result.reason, HasSubstr("signal 6"));
}

TEST(Nursery, OutlivesItsProcess) {
  const ScratchFolder scratch;
  Nursery nursery(LOCKSTEP_BINARY);
  nursery.start(endless(scratch));
  const pid_t server = wait_for_child_of(::getpid());
  const pid_t child = wait_for_child_of(server);
  ::kill(server, SIGKILL);
  EXPECT_EQ(nursery.finish().ending, Ending::kCrashed);
  EXPECT_EQ(nursery.run({.arguments = {"--version"}, .folder = {}}).ending, Ending::kDone);
  while (is_running(child)) {  // it ends with its server
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int forks = 0;

// A process with threads may not fork: the copy inherits locks that nobody will open.
TEST(Nursery, IsStartedAnewWithoutForkingThisProcess) {
  ASSERT_EQ(::pthread_atfork([] { ++forks; }, nullptr, nullptr), 0);
  Nursery nursery(LOCKSTEP_BINARY);
  nursery.start({.arguments = {"--version"}, .folder = {}});
  ::kill(wait_for_child_of(::getpid()), SIGKILL);
  nursery.finish();
  EXPECT_EQ(nursery.run({.arguments = {"--version"}, .folder = {}}).ending, Ending::kDone);
  EXPECT_EQ(forks, 0);
}

TEST(Nursery, RunsInAFolder) {
  const ScratchFolder scratch;
  Nursery nursery(LOCKSTEP_BINARY);
  EXPECT_EQ(nursery
                .run({.arguments = {"topology", "build", "--template", "Spectrum-X", "-g", "8",
                                    "-o", "t.txt"},
                      .folder = scratch.path()})
                .ending,
            Ending::kDone);
  EXPECT_TRUE(std::filesystem::exists(scratch / "t.txt"));
  EXPECT_THAT(nursery.run({.arguments = {"--version"}, .folder = scratch / "none"}).reason,
              HasSubstr("cannot enter the folder"));
}

// Beside the program may lie anything: a stranger reads none of it, but the cache works.
TEST(Nursery, AStrangerReadsNothingBesideTheProgram) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "own");
  ::setenv("LOCKSTEP_CACHE", (scratch / "cache").c_str(), 1);
  Nursery nursery(LOCKSTEP_BINARY);
  ::unsetenv("LOCKSTEP_CACHE");
  const std::filesystem::path beside =
      std::filesystem::path(LOCKSTEP_BINARY).parent_path() / "CMakeCache.txt";
  ASSERT_TRUE(std::filesystem::exists(beside));
  EXPECT_THAT(nursery
                  .run({.arguments = {"topology", "check", beside.string()},
                        .folder = scratch / "own",
                        .confined = true,
                        .readable = {}})
                  .reason,
              HasSubstr("this file is not served"));
  const IsolatedTask check{.arguments = {"topology", "check", "Spectrum-X:g=8"},
                           .folder = scratch / "own",
                           .confined = true,
                           .readable = {}};
  const IsolatedResult first = nursery.run(check), again = nursery.run(check);
  EXPECT_EQ(first.ending, Ending::kDone) << first.reason;
  EXPECT_EQ(first.err, "");  // no warning of a cache that cannot be used
  EXPECT_EQ(again.out, first.out);
  EXPECT_TRUE(std::filesystem::exists(scratch / "cache/results.sqlite"));
}

// Not even an empty folder outside of its own.
TEST(Nursery, AStrangerMakesNoFolders) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "own");
  std::filesystem::create_directory(scratch / "served");
  Nursery nursery(LOCKSTEP_BINARY);
  const auto reason = [&](std::vector<std::string> arguments) {
    return nursery
        .run({.arguments = std::move(arguments),
              .folder = scratch / "own",
              .confined = true,
              .readable = {scratch / "served", LOCKSTEP_SOURCE_DIR "/tests/data"}})
        .reason;
  };
  const std::vector<std::string> simulate = {
      "simulate",   "--workload",     LOCKSTEP_SOURCE_DIR "/tests/data/simulate/tiny.txt",
      "--topology", "Spectrum-X:g=8", "--csv"};
  std::vector<std::string> elsewhere = simulate, here = simulate;
  elsewhere.push_back(scratch / "served/new/folder");
  here.emplace_back("new/folder");
  EXPECT_THAT(reason(elsewhere), HasSubstr("this file is not served"));
  EXPECT_EQ(reason(here), "");
  EXPECT_THAT(reason({"generate", "--generator", "simai-training", "--num_layers", "2", "-o",
                      scratch / "served/generated/"}),
              HasSubstr("this file is not served"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "served"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "own/new/folder"));
}

TEST(Nursery, EndingsHaveNames) {
  for (const Ending ending : {Ending::kDone, Ending::kCheckFailed, Ending::kTimedOut}) {
    EXPECT_EQ(ending_named(to_text(ending)), ending);
  }
  EXPECT_THROW(ending_named("well"), Error);
}

// In one process, in several threads at once.
TEST(Program, RunsCaptured) {
  const auto run = [](int gpus) {
    return run_program_captured({"topology", "check", "Spectrum-X:g=" + std::to_string(gpus)});
  };
  std::vector<std::thread> threads;
  std::vector<ProgramResult> results(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { results[static_cast<std::size_t>(i)] = run(8 << i); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int i = 0; i < 4; ++i) {
    const ProgramResult& result = results[static_cast<std::size_t>(i)];
    EXPECT_EQ(result.code, ExitCode::kDone);
    EXPECT_THAT(result.out, HasSubstr(std::to_string(8 << i) + " GPUs"));
  }
  const ProgramResult wrong = run(0);
  EXPECT_EQ(wrong.code, ExitCode::kBadInput);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, StartsWith("lockstep: "));
}

/// This process's environment, changed for a while.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    before_ = before == nullptr ? std::nullopt : std::optional<std::string>(before);
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::string folder_of_lockstep() {
  return std::filesystem::path(LOCKSTEP_BINARY).parent_path().string();
}

// In a program that Lockstep is part of: the ranks are lockstep's, and the program's own children
// are its own. Were this program started in lockstep's place, it would run no test and end well.
TEST(Program, RanksAreLockstepsInAnotherProgram) {
  const ScratchFolder scratch;
  const Setting path("PATH", folder_of_lockstep() + ":" + std::getenv("PATH"));
  const Setting filter("GTEST_FILTER", "none");
  const pid_t own = ::fork();
  if (own == 0) {
    ::_exit(42);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(own), &ended, WEXITED | WNOWAIT);
  const ProgramResult result = run_program_captured(
      {"run", "--workload", LOCKSTEP_SOURCE_DIR "/tests/data/run/four-gpus.txt", "--transport",
       "control", "--local-ranks", "4", "--master", "127.0.0.1:29434", "-o", scratch / "out"});
  EXPECT_EQ(result.code, ExitCode::kDone) << result.err;
  EXPECT_TRUE(std::filesystem::exists(scratch / "out/timeline-rank3.json"));
  int status = 0;
  EXPECT_EQ(::waitpid(own, &status, 0), own);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(Program, IsNoLockstepWhateverItsName) {
  const Setting path("PATH", folder_of_lockstep() + ":" + std::getenv("PATH"));
  EXPECT_EQ(lockstep_to_start(), LOCKSTEP_BINARY);
  const std::string name = own_program().filename().string();
  if (!name.starts_with("lockstep")) {
    const ScratchFolder scratch;
    std::filesystem::copy(own_program(), scratch / "lockstep-host");
    const ProcessResult result = run_process(
        {scratch / "lockstep-host", "--gtest_filter=Program.IsNoLockstepWhateverItsName"});
    EXPECT_EQ(result.exit_code, 0) << result.out;
  }
}

}  // namespace
}  // namespace lockstep::nursery_test
