// Every workload AICB wrote, by the command line with the same flags, byte for byte; and no crash
// where AICB failed.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::aicb_generate_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string id, output, error;
  bool completed = false;
  std::vector<std::string> words;
};

std::string_view generator_of(char kind) {
  switch (kind) {
    case 'S':
    case 'X':
      return "simai-training";
    case 'G':
    case 'A':
      return "megatron";
    case 'Z':
      return "deepspeed12";
    case 'T':
      return "deepspeed3";
    case 'C':
      return "collective";
    case 'M':
      return "micro";
    case 'I':
      return "inference";
    case 'V':
      return "vidur";
    default:
      return "trace-replay";
  }
}

/// The rows of index.tsv that are generated workloads; L002 onwards are logs and analyses.
std::vector<Case> cases() {
  std::vector<Case> found;
  const std::string index = testing::slurp(testing::reference_dir() + "/aicb/index.tsv");
  for (const std::string_view line : split(index, '\n')) {
    const std::vector<std::string_view> cells = split(line, '\t');
    if (cells.size() < 11 || cells[0] == "case" || (cells[0][0] == 'L' && cells[0] > "L002")) {
      continue;
    }
    Case one{
        std::string(cells[0]), std::string(cells[5]), std::string(cells[10]), cells[2] == "0", {}};
    for (const std::string_view word : split_blanks(cells[9])) {
      if (word != "sh" && !word.starts_with("scripts/") && !word.starts_with("drivers/")) {
        one.words.emplace_back(word);
      }
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::string folder_of(const Case& one) {
  return testing::reference_dir() + "/aicb/" + one.id + "/in";
}

/// The DeepSpeed log has its name in AICB's source; ours is told.
std::vector<std::string> words_of(const Case& one) {
  if (one.id[0] != 'L') {
    return one.words;
  }
  std::string log = "missing.txt";
  if (fs::is_directory(folder_of(one))) {
    for (const auto& entry : fs::directory_iterator(folder_of(one))) {
      log = entry.is_regular_file() ? entry.path().filename().string() : log;
    }
  }
  return {log};
}

/// What the command line does with a case in the folder of its inputs; AICB's files are named
/// relative to it. The script's flags and the embedded times are not told from the words.
testing::RunResult generate(const Case& one, const std::string& output) {
  std::vector<std::string> words{"generate", "--generator", std::string(generator_of(one.id[0]))};
  const std::vector<std::string> own = words_of(one);
  words.insert(words.end(), own.begin(), own.end());
  if (one.id[0] == 'X' || one.id[0] == 'A') {
    words.emplace_back(one.id[0] == 'X' ? "--script-compat" : "--fill_times");
  }
  words.insert(words.end(), {"-o", output});
  testing::RunOptions options;
  const ScratchFolder nothing;
  options.folder = fs::is_directory(folder_of(one)) ? folder_of(one) : nothing.path();
  return testing::run(words, options);
}

std::string expected_text(const Case& one) {
  const std::string path = testing::reference_dir() + "/aicb/" + one.id + "/out/" + one.output;
  return testing::slurp(fs::exists(path) ? path : path + ".gz");
}

std::string first_difference(const std::string& ours, const std::string& theirs) {
  const std::vector<std::string_view> a = split(ours, '\n');
  const std::vector<std::string_view> b = split(theirs, '\n');
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) {
      return fmt::format("line {}\n  ours   {}\n  theirs {}", i + 1, a[i], b[i]);
    }
  }
  return fmt::format("{} lines instead of {}", a.size(), b.size());
}

TEST(AicbReference, CompletingCasesByteForByte) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::map<char, std::pair<int, int>> counts;
  for (const Case& one : cases()) {
    if (!one.completed) {
      continue;
    }
    SCOPED_TRACE(one.id);
    const ScratchFolder folder;
    const testing::RunResult result = generate(one, folder.path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string file = folder / fs::path(one.output).filename().string();
    const std::string ours = fs::exists(file) ? testing::slurp(file) : "no file of this name";
    const std::string theirs = expected_text(one);
    EXPECT_TRUE(ours == theirs) << first_difference(ours, theirs);
    auto& [passed, total] = counts[one.id[0]];
    passed += ours == theirs ? 1 : 0;
    ++total;
  }
  for (const auto& [kind, count] : counts) {
    fmt::print("{} {}: {} of {}\n", kind, generator_of(kind), count.first, count.second);
  }
  EXPECT_FALSE(counts.empty());
}

TEST(AicbReference, FailingCasesGetOurErrorOrAWorkload) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const Case& one : cases()) {
    if (one.completed) {
      continue;
    }
    SCOPED_TRACE(one.id);
    const ScratchFolder folder;
    const testing::RunResult result = generate(one, folder.path());
    if (result.exit_code == 0) {
      fmt::print("{}: a workload where AICB says: {}\n", one.id, one.error);
      EXPECT_FALSE(fs::is_empty(folder.path()));
    } else {
      fmt::print("{}: {}", one.id, result.err);
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_TRUE(fs::is_empty(folder.path()));
    }
  }
}

TEST(AicbReference, StandardOutputGetsTheSame) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::string kinds;
  for (const Case& one : cases()) {
    if (one.completed && kinds.find(one.id[0]) == std::string::npos) {
      kinds += one.id[0];
      EXPECT_TRUE(generate(one, "-").out == expected_text(one)) << one.id;
    }
  }
  EXPECT_GE(kinds.size(), 11U);
}

}  // namespace
}  // namespace lockstep::aicb_generate_test
