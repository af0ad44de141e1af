// Our topologies against those of SimAI's own generator: same flags, same text, line for line.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "tests/support/reference.h"
#include "topologies/builder.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace lockstep::topology_reference_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string folder, name, text, messages;
  std::string topology_template = "plain";
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
      if (words[i] == "-topo") {
        one.topology_template = words[++i];
      } else {
        one.flags.emplace_back(words[i]);
      }
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

BuiltTopology build(const Case& one) {
  const TopologyBuilder* builder = find_topology_builder(one.topology_template);
  if (builder == nullptr) {
    throw Error("unknown template " + one.topology_template);
  }
  return build_topology(*builder, FlagValues::from_words(*builder, one.flags));
}

TEST(TopologyReference, BuildersWriteSimaisText) {
  LOCKSTEP_NEEDS_REFERENCE();
  int built = 0, refused = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.folder);
    if (one.messages.find("Traceback") != std::string::npos) {
      // The generator died and left a truncated file; we refuse the flags, and the file.
      EXPECT_THROW(build(one), Error);
      EXPECT_THROW(parse_simai_topology(one.text, one.name), Error);
      ++refused;
      continue;
    }
    const BuiltTopology ours = build(one);
    EXPECT_EQ(ours.file_name, one.name);
    EXPECT_TRUE(to_simai_text(ours.topology) == one.text);
    const std::size_t warned = one.messages.find("The correct asw_switch_num is set to ");
    ASSERT_EQ(ours.warnings.size(), warned == std::string::npos ? 0U : 1U);
    if (!ours.warnings.empty()) {
      const std::string& warning = ours.warnings[0];
      const std::string tail = warning.substr(warning.find("The correct"));
      EXPECT_EQ(one.messages.substr(warned, tail.size() + 1), tail + "\n");
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
