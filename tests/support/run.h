#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

/// How a program ended and what it said.
struct RunResult {
  int exit_code = 0;  ///< 128 + the signal if a signal ended it
  std::string out;
  std::string err;
};

/// Where a program runs and what its standard streams are.
struct RunOptions {
  std::string input;                         ///< text on standard input
  std::string folder = LOCKSTEP_SOURCE_DIR;  ///< working directory
  std::optional<std::string> out_to;         ///< file that takes stdout, "/dev/full" say
  std::vector<std::string> environment;      ///< "NAME=value", beside our own
  int seconds = 120;                         ///< then it is killed
};

/// Runs a program (found on PATH unless it has a slash) to its end.
/// ERRORS: Error if it cannot be started or does not end in time.
RunResult run_program(const std::vector<std::string>& command, const RunOptions& options = {});

/// Runs the `lockstep` of this build: run({"topology", "check", file}).
RunResult run(std::vector<std::string> arguments, const RunOptions& options = {});

/// A fresh empty folder, removed with all it holds at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// Compares with the golden file tests/golden/<name>; the answer is empty if they are equal, else
/// the first line that differs and how to accept the new text. With LOCKSTEP_UPDATE_GOLDEN=1 in
/// the environment the file is written instead (read the diff before you commit it).
std::string differs_from_golden(const std::string& name, std::string_view text);

}  // namespace lockstep::testing

/// Fails the test where `text` differs from the golden file.
#define EXPECT_GOLDEN(name, text) \
  EXPECT_EQ("", ::lockstep::testing::differs_from_golden(name, text))
