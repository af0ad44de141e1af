#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gunzip.h"
#include "base/gzip_file.h"
#include "base/process.h"
#include "base/stop_signal.h"
#include "tests/support/run.h"

namespace lockstep::base_files_test {
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

TEST(AtomicFile, LeavesTheTemporaryOfAnotherProcessWithOurNumber) {
  const ScratchFolder folder;  // one that two containers share
  const std::string taken = folder / fmt::format("a.{}.tmp", ::getpid());
  std::FILE* other = std::fopen(taken.c_str(), "wb");
  ASSERT_NE(other, nullptr);
  std::fputs("half of what", other);
  std::fclose(other);
  write_file(folder / "a", "ours");
  EXPECT_EQ(read(folder / "a"), "ours");
  EXPECT_EQ(read(taken), "half of what");
  EXPECT_EQ(files_in(folder), 2);
}

TEST(AtomicFile, WhatKilledProcessesLeftGoes) {
  const ScratchFolder folder;
  const pid_t killed = ::fork();
  if (killed == 0) {
    ::_exit(0);
  }
  ASSERT_GT(killed, 0);
  ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
  const auto left = [&](const std::string& name) {
    std::fclose(std::fopen((folder / name).c_str(), "wb"));
    return folder / name;
  };
  const auto is_there = [](const std::string& path) { return std::filesystem::exists(path); };
  const std::string first = left(fmt::format("a.{}.tmp", killed));
  const std::string second = left(fmt::format("a.{}-3.tmp", killed));
  const std::string own = left(fmt::format("b.{}.tmp", ::getpid()));
  std::vector<std::string> others;
  for (const std::string& name :
       {fmt::format("a.{}.tmp", ::getppid()), fmt::format("c.{}.tmp", killed),
        fmt::format("a.{}", killed), fmt::format("a.{}.tmp.old", killed), std::string("a.x.tmp"),
        std::string("a..tmp"), std::string("a.tmp"), std::string("a")}) {
    others.push_back(left(name));
  }
  remove_abandoned(folder.path(), {"a", "b"});
  EXPECT_FALSE(is_there(first) || is_there(second) || is_there(own));
  for (const std::string& path : others) {
    EXPECT_TRUE(is_there(path)) << path;
  }
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

TEST(AtomicFile, KeepsThePermissionsOfTheFileThatItReplaces) {
  const ScratchFolder folder;
  const auto mode = [&](const char* name) {
    struct stat info {};
    return ::stat((folder / name).c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
  };
  for (const mode_t wanted : {0600U, 0444U, 0755U}) {
    write_file(folder / "a", "old");
    ASSERT_EQ(::chmod((folder / "a").c_str(), wanted), 0);
    write_file(folder / "a", "new");
    EXPECT_EQ(mode("a"), wanted);
    EXPECT_EQ(read(folder / "a"), "new");
  }
  const mode_t before = ::umask(027);
  write_file(folder / "fresh", "new");
  ::umask(before);
  EXPECT_EQ(mode("fresh"), 0640U);
}

TEST(AtomicFile, TakesEveryNameThatTheSystemTakes) {
  const ScratchFolder folder;
  write_file(folder / std::string(255, 'x'), "new");
  EXPECT_EQ(read(folder / std::string(255, 'x')), "new");
  EXPECT_THAT(problem_of([&] { write_file(folder / std::string(256, 'x'), "x"); }),
              HasSubstr("File name too long"));
  EXPECT_EQ(files_in(folder), 1);
}

TEST(AtomicFile, WritesWhatASymbolicLinkLeadsTo) {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  fs::create_directory(folder / "sub");
  write_file(folder / "sub/a", "old");
  fs::create_symlink("a", folder / "sub/inner");
  fs::create_symlink("sub/inner", folder / "outer");
  write_file(folder / "outer", "new");
  EXPECT_EQ(read(folder / "sub/a"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "outer") && fs::is_symlink(folder / "sub/inner"));
  EXPECT_FALSE(fs::is_symlink(folder / "sub/a"));

  fs::create_symlink("sub/later", folder / "dangling");
  write_file(folder / "dangling", "new");
  EXPECT_EQ(read(folder / "sub/later"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));

  fs::create_symlink("no/such", folder / "nowhere");
  EXPECT_THAT(problem_of([&] { write_file(folder / "nowhere", "x"); }),
              AllOf(StartsWith(folder / "nowhere"), HasSubstr("No such file or directory")));
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(
      problem_of([&] { write_file(folder / "loop", "x"); }),
      AllOf(StartsWith(folder / "loop"), HasSubstr("cannot write"), HasSubstr("symbolic links")));
  EXPECT_TRUE(fs::is_symlink(folder / "loop"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "sub"), {}), 3);
}

TEST(AtomicFile, GoesOnInAnOpenFileThatIsNamedByItsNumber) {
  const ScratchFolder folder;
  const int file = ::open((folder / "a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  const std::string name = "/dev/fd/" + std::to_string(file);
  std::filesystem::create_symlink(name, folder / "link");
  write_file(name, "one ");
  write_file(folder / "link", "two ");
  ASSERT_EQ(::write(file, "after", 5), 5);
  ::close(file);
  EXPECT_EQ(read(folder / "a"), "before one two after");
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
  EXPECT_THAT(
      problem_of([&] { FileText(folder / "long", Bytes(8)); }),
      AllOf(HasSubstr("more than 8 B"), HasSubstr("--max-input"), HasSubstr("LOCKSTEP_MAX_INPUT")));
  EXPECT_EQ(problem_of([&] { FileText(folder / "long", Bytes(9)); }), "no error");
}

TEST(FileText, ALimitThatTheUserSaysGoesBeforeAReadersOwn) {
  const ScratchFolder folder;
  write_file(folder / "long", "123456789");
  {
    const InputLimit raised(Bytes(9));
    EXPECT_EQ(problem_of([&] { FileText(folder / "long", Bytes(8)); }), "no error");
    const InputLimit lowered(Bytes(5));
    EXPECT_THAT(problem_of([&] { FileText(folder / "long"); }), HasSubstr("more than 5 B"));
    const InputLimit none(std::nullopt);
    EXPECT_EQ(input_limit(), Bytes(5));
  }
  ::setenv("LOCKSTEP_MAX_INPUT", "6B", 1);
  EXPECT_THAT(problem_of([&] { FileText(folder / "long"); }), HasSubstr("more than 6 B"));
  ::setenv("LOCKSTEP_MAX_INPUT", "six", 1);
  EXPECT_THAT(problem_of([&] { FileText(folder / "long"); }), StartsWith("LOCKSTEP_MAX_INPUT: "));
  ::unsetenv("LOCKSTEP_MAX_INPUT");
  EXPECT_EQ(input_limit(), Bytes(std::int64_t{4} << 30));
}

TEST(FileText, DevicesAreRefusedAndPipesEndAtTheLimit) {
  EXPECT_THAT(problem_of([] { FileText("/dev/zero"); }), HasSubstr("is a device"));
  EXPECT_EQ(problem_of([] { FileText("/dev/null"); }), "no error");
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::thread writer([&] {
    const int pipe = ::open((folder / "pipe").c_str(), O_WRONLY);
    const std::string block(1 << 16, 'x');
    while (::write(pipe, block.data(), block.size()) > 0) {
    }
    ::close(pipe);
  });
  EXPECT_THAT(problem_of([&] { FileText(folder / "pipe", Bytes(1 << 20)); }),
              HasSubstr("more than 1 MiB"));
  writer.join();
  std::signal(SIGPIPE, before);
}

/// An alarm after a while, again and again, that does nothing but end a call that waits.
struct Interruptions {
  explicit Interruptions(int signal) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before);
    thread = std::jthread([signal, waits = ::pthread_self()](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::pthread_kill(waits, i == 1 ? signal : SIGALRM);
      }
    });
  }
  ~Interruptions() {
    thread = {};
    ::sigaction(SIGALRM, &before, nullptr);
  }
  struct sigaction before {};
  std::jthread thread;
};

TEST(FileText, APipeThatSaysNothingIsLeftWhenToldToStop) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const bool opened : {false, true}) {  // it waits for a writer, or for what that writes
    const int writer = opened ? ::open((folder / "pipe").c_str(), O_RDWR) : -1;
    const StopSignal stop;
    const Interruptions interruptions(SIGINT);
    try {
      FileText(folder / "pipe");
      ADD_FAILURE() << "read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kInterrupted) << error.what();
    }
    ::close(writer);
  }
}

TEST(FileText, AByteOrderMarkIsLeftOutAndUtf16IsRefused) {
  const ScratchFolder folder;
  write_file(folder / "a", "\xEF\xBB\xBFtext");
  EXPECT_EQ(read(folder / "a"), "text");
  write_file(folder / "a", "\xEF\xBB\xBF");
  EXPECT_EQ(read(folder / "a"), "");
  write_file(folder / "a", std::string("\xFF\xFEt\0", 4));
  EXPECT_THAT(problem_of([&] { read(folder / "a"); }),
              AllOf(HasSubstr("a: the text is in UTF-16"), HasSubstr("hint: iconv")));
}

TEST(FileText, PicklesAreRefusedWithAdvice) {
  const ScratchFolder folder;
  for (const std::string bytes : {"\x80\x04\x95\x0b", "\x80\x02}q\x01"}) {
    write_file(folder / "workload", bytes + "stuff.");
    EXPECT_THAT(problem_of([&] { FileText(folder / "workload"); }),
                AllOf(HasSubstr("pickle"), HasSubstr("hint: AICB writes the same as .csv")));
  }
  write_file(folder / "workload.pkl", "anything");
  EXPECT_THAT(problem_of([&] { FileText(folder / "workload.pkl"); }), HasSubstr("pickle"));
  // A Chakra trace whose first message has 512 bytes begins with two of these bytes.
  write_file(folder / "trace.et", std::string("\x80\x04\x0a\x05") + "0.0.4.");
  EXPECT_EQ(problem_of([&] { FileText(folder / "trace.et"); }), "no error");
}

TEST(Gunzip, TakesWhatTheEndTellsOnlyIfItIsSo) {
  const ScratchFolder folder;
  const std::string text(100'000, 'a');  // packs to less than a 64th
  {
    GzipFile file(folder / "a.gz");
    file.write(text);
    file.commit();
  }
  const std::string packed = read(folder / "a.gz");
  EXPECT_EQ(gunzip(packed, "a.gz"), text);
  EXPECT_EQ(gunzip(packed + packed, "a.gz"), text + text);  // two members
  EXPECT_EQ(gunzip(packed, "a.gz", Bytes(100'000)), text);
  EXPECT_THAT(problem_of([&] { (void)gunzip(packed, "a.gz", Bytes(99'999)); }),
              AllOf(HasSubstr("a.gz: the file unpacks to more than"), HasSubstr("--max-input")));
  EXPECT_THAT(problem_of([&] { (void)gunzip(packed.substr(0, 50), "a.gz"); }),
              HasSubstr("ends too early"));
  std::string damaged = packed;
  damaged[20] ^= 0x55;
  EXPECT_THAT(problem_of([&] { (void)gunzip(damaged, "a.gz"); }), HasSubstr("a.gz"));
  {
    GzipFile file(folder / "empty.gz");
    file.commit();
  }
  EXPECT_EQ(gunzip(read(folder / "empty.gz"), "empty.gz"), "");
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
  EXPECT_EQ(
      problem_of([] { run_process({"true"}, {.folder = "/absent/folder", .environment = {}}); }),
      "/absent/folder: there is no such folder");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(problem_of([] {
                run_process({"sleep", "60"}, {.environment = {}, .seconds = 1});
              }),
              HasSubstr("sleep did not end within 1 s"));
  EXPECT_THROW(run_process({"sleep", "60"}, {.environment = {}, .seconds = 0.01}), OutOfTime);
  int asked = 0;
  const ProcessOptions patient{.environment = {},
                               .seconds = std::numeric_limits<double>::infinity(),
                               .give_up = [&] { return ++asked > 2; }};
  EXPECT_THAT(problem_of([&] {
                run_process({"sleep", "60"}, patient);
              }),
              HasSubstr("sleep was given up"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace lockstep::base_files_test
