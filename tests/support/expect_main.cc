// lockstep-expect: runs one command line of lockstep and compares how it ends; the program behind
// lockstep_cli_test (cmake/AddTest.cmake), where its flags are explained.
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "tests/support/run.h"

namespace {

using lockstep::testing::RunResult;

constexpr std::string_view kOut = "@OUT@";

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

struct Expectation {
  int exit_code = 0;
  std::vector<std::string> out, err;  // regular expressions, each found somewhere
  std::string golden;                 // file that equals stdout
  std::string stdout_to;
};

std::vector<std::string> problems(const RunResult& result, const Expectation& expected) {
  std::vector<std::string> found;
  if (result.exit_code != expected.exit_code) {
    found.push_back(fmt::format("exit code {}, expected {}", result.exit_code, expected.exit_code));
  }
  const auto search = [&](const std::vector<std::string>& patterns, const std::string& text,
                          const char* stream) {
    for (const std::string& pattern : patterns) {
      if (!std::regex_search(text, std::regex(pattern, std::regex::multiline))) {
        found.push_back(fmt::format("{} does not match {}", stream, pattern));
      }
    }
  };
  search(expected.out, result.out, "stdout");
  search(expected.err, result.err, "stderr");
  if (!expected.golden.empty()) {
    const std::string difference =
        lockstep::testing::differs_from_golden(expected.golden, result.out);
    if (!difference.empty()) {
      found.push_back(difference);
    }
  }
  // An error is one message of ours: nothing on stdout, and a prefix that says who speaks.
  if (expected.exit_code >= 2 && !result.err.starts_with("lockstep: ")) {
    found.emplace_back("stderr does not begin with 'lockstep: '");
  }
  if (expected.exit_code == 0 && expected.err.empty() && !result.err.empty()) {
    found.emplace_back("stderr is not empty");
  }
  return found;
}

int run(int argc, char** argv) {
  CLI::App app("Runs lockstep and compares how it ends.");
  Expectation expected;
  std::vector<std::string> arguments;
  app.add_option("--exit", expected.exit_code);
  app.add_option("--out", expected.out)->allow_extra_args(false);
  app.add_option("--err", expected.err)->allow_extra_args(false);
  app.add_option("--golden", expected.golden);
  app.add_option("--stdout-to", expected.stdout_to);
  app.add_option("arguments", arguments, "after --: the command line");
  CLI11_PARSE(app, argc, argv);

  const lockstep::testing::ScratchFolder scratch;
  for (std::string& argument : arguments) {
    argument = replace_all(std::move(argument), kOut, scratch.path());
  }
  lockstep::testing::RunOptions options;
  if (!expected.stdout_to.empty()) {
    options.out_to = expected.stdout_to;
  }
  RunResult result = lockstep::testing::run(arguments, options);
  result.out = replace_all(std::move(result.out), scratch.path(), kOut);
  result.err = replace_all(std::move(result.err), scratch.path(), kOut);

  const std::vector<std::string> found = problems(result, expected);
  for (const std::string& problem : found) {
    fmt::print("FAILED: {}\n", problem);
  }
  if (!found.empty()) {
    fmt::print("lockstep {}\n--- exit code {}\n--- stdout\n{}\n--- stderr\n{}\n",
               fmt::join(arguments, " "), result.exit_code, result.out, result.err);
  }
  return found.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print("FAILED: {}\n", error.what());
    return 1;
  }
}
