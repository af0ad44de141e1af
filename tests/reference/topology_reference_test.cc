// Our topologies against those of SimAI's own generator: the command line with the same flags, same
// text, line for line.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace lockstep::topology_reference_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string folder, name, text, messages;
  std::vector<std::string> flags;
};

std::vector<Case> cases() {
  std::vector<Case> found;
  for (const auto& entry : fs::directory_iterator(testing::reference_dir() + "/simai/topologies")) {
    Case one;
    one.folder = entry.path().filename();
    const std::string command = testing::slurp(entry.path() / "cmd.txt");
    const std::vector<std::string_view> words = split_blanks(command);
    for (std::size_t i = 1; i < words.size(); ++i) {
      one.flags.emplace_back(words[i]);
    }
    one.messages = testing::slurp(entry.path() / "stdout.txt");
    for (const auto& file : fs::directory_iterator(entry.path())) {
      const std::string name = file.path().filename();
      if (name != "cmd.txt" && name != "stdout.txt") {
        one.name = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
        one.text = testing::slurp(file.path());
      }
    }
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(),
            [](const Case& a, const Case& b) { return a.folder < b.folder; });
  return found;
}

TEST(TopologyReference, BuildersWriteSimaisText) {
  LOCKSTEP_NEEDS_REFERENCE();
  int built = 0, refused = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.folder);
    const ScratchFolder folder;
    std::vector<std::string> words{"topology", "build"};
    words.insert(words.end(), one.flags.begin(), one.flags.end());
    words.insert(words.end(), {"-o", folder.path()});
    const testing::RunResult result = testing::run(words);
    if (one.messages.find("Traceback") != std::string::npos) {
      // The generator died and left a truncated file; we refuse the flags, and the file.
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_TRUE(fs::is_empty(folder.path()));
      EXPECT_THROW(parse_simai_topology(one.text, one.name), Error);
      ++refused;
      continue;
    }
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(testing::slurp(folder / one.name) == one.text);
    words.back() = "-";
    EXPECT_TRUE(testing::run(words).out == one.text);
    const std::string_view kCorrected = "The correct asw_switch_num is set to ";
    const std::size_t theirs = one.messages.find(kCorrected);
    const std::size_t ours = result.err.find(kCorrected);
    ASSERT_EQ(ours == std::string::npos, theirs == std::string::npos) << result.err;
    if (ours != std::string::npos) {
      EXPECT_EQ(result.err.substr(ours, result.err.find('\n', ours) - ours),
                one.messages.substr(theirs, one.messages.find('\n', theirs) - theirs));
    }
    ++built;
  }
  EXPECT_GE(built, 13);
  EXPECT_GE(refused, 1);
}

void expect_round_trips(const std::string& text, const std::string& name) {
  SCOPED_TRACE(name);
  const Topology topology = parse_topology(text, name);
  EXPECT_TRUE(to_simai_text(topology) == text);
  EXPECT_TRUE(parse_topology(to_json_text(topology), name) == topology);
}

TEST(TopologyReference, FilesAreWrittenBackByteForByte) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const Case& one : cases()) {
    if (one.messages.find("Traceback") == std::string::npos) {
      expect_round_trips(one.text, one.name);
    }
  }
}

TEST(TopologyReference, TopologiesOfAllRunsAreReadAndRebuilt) {
  LOCKSTEP_NEEDS_REFERENCE();
  int runs = 0;
  for (const auto& entry : fs::directory_iterator(testing::reference_dir() + "/simai")) {
    const fs::path file = entry.path() / "topo";
    if (fs::exists(file)) {
      expect_round_trips(testing::slurp(file), file);
      ++runs;
    }
  }
  EXPECT_GE(runs, 25);
}

}  // namespace
}  // namespace lockstep::topology_reference_test
