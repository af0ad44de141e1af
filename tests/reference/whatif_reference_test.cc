// The documents StragglerAnalysis wrote, byte for byte, and its dependency graphs.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/whatif.h"
#include "base/json.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"
#include "trace/read_trace.h"

namespace lockstep::whatif::whatif_reference_test {
namespace {

using testing::reference_dir;
using testing::slurp;

std::string folder(const std::string& name) { return reference_dir() + "/what-if/" + name; }

class WhatIf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    LOCKSTEP_NEEDS_REFERENCE();
    if (!has_parquet()) {
      GTEST_SKIP() << "this build has no Arrow";
    }
  }
  std::string name() const { return GetParam(); }
  std::string trace() const { return folder(name()) + "/trace-" + name() + ".parquet"; }
  std::string meta() const { return folder(name()) + "/meta-" + name() + ".yaml"; }

  /// Runs the command with further flags; the documents are in scratch_.
  void run(const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"whatif", "--trace", trace(),        "--meta",
                                      meta(),   "-o",      scratch_.path()};
    words.insert(words.end(), flags.begin(), flags.end());
    const testing::RunResult result = testing::run(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string out(const std::string& kind, const std::string& ending = ".json") const {
    return slurp(scratch_ / (kind + "-" + name() + ending));
  }
  std::string expected(const std::string& kind, const std::string& ending = ".json") const {
    return slurp(folder(name()) + "/" + kind + "-" + name() + ending);
  }

  testing::ScratchFolder scratch_;
};

TEST_P(WhatIf, DocumentsAreTheArtifacts) {
  run({});
  EXPECT_EQ(out("result"), expected("result"));
  EXPECT_EQ(out("ms"), expected("ms"));
  EXPECT_EQ(out("mw"), expected("mw"));
  // No EXPECT_EQ: 20 MB are not worth printing.
  EXPECT_TRUE(out("ideal-timeline", ".json.gz") == expected("ideal-timeline", ".json.gz"));
}

TEST_P(WhatIf, LaunchDelaysAreTakenApartToo) {
  run({"--decompose-threshold", "1.0"});
  EXPECT_EQ(out("result"), slurp(folder("extra/result-" + name() + "-thr1.json")));
}

TEST_P(WhatIf, SomeStepsOnly) {
  run({"--steps", "16-40"});
  EXPECT_EQ(out("result"), slurp(folder("extra/result-" + name() + "-steps.json")));
}

/// The recorded picture was drawn from 64-bit stamps, ours from the 32 bits the trace keeps. The
/// one of SE has two steps that its trace has not.
TEST_P(WhatIf, TimelineIsTheRecordedOne) {
  run({});
  const Json ours = parse_json(out("timeline", ".json.gz"), "ours");
  const Json theirs = parse_json(expected("timeline", ".json.gz"), "theirs");
  std::set<std::int64_t> steps;
  for (const Json& event : ours) {
    if (event["ph"] == "X") {
      steps.insert(event["args"]["step"].get<std::int64_t>());
    }
  }
  std::size_t at = 0;
  for (const Json& event : theirs) {
    if (event["ph"] == "X" && steps.count(event["args"]["step"].get<std::int64_t>()) == 0) {
      continue;
    }
    ASSERT_LT(at, ours.size());
    const Json& own = ours[at++];
    for (const char* key : {"name", "cat", "pid", "tid", "ph", "args"}) {
      if (event.contains(key)) {
        ASSERT_EQ(own.at(key), event.at(key)) << event.dump();
      }
    }
    if (event["ph"] == "X") {
      ASSERT_NEAR(own["dur"].get<double>(), event["dur"].get<double>(), 1.6) << event.dump();
      if (name() == "ST") {
        ASSERT_NEAR(own["ts"].get<double>(), event["ts"].get<double>(), 0.25) << event.dump();
      }
    }
  }
  EXPECT_EQ(at, ours.size());
}

/// The artifact's notebook: T over T with the transfers of some types taking no time.
TEST_P(WhatIf, SpeedupsWithoutTransfers) {
  const auto speedup = [&](const std::string& edit) {
    const testing::RunResult result = testing::run(
        {"whatif", "--trace", trace(), "--meta", meta(), "-o", scratch_.path(), "--set", edit});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::size_t at = result.out.find("speedup ") + 8;
    return result.out.substr(at, result.out.find(',', at) - at);
  };
  const bool st = name() == "ST";
  EXPECT_EQ(speedup("pp-comm = 0"), st ? "1.0012516774513014" : "1.004557686711403");
  EXPECT_EQ(speedup("dp-comm = 0"), st ? "1.0392968710937196" : "1.0045815562146325");
}

/// The causes that section 5 of the paper and the figures above name.
TEST_P(WhatIf, NamesTheCauses) {
  run({});
  const Json causes = parse_json(out("causes"), "causes");
  std::vector<std::string> found;
  for (const Json& cause : causes["causes"]) {
    found.push_back(cause["cause"].get<std::string>());
  }
  const Json& sign = causes["sequence_length"];
  if (name() == "ST") {
    EXPECT_THAT(found, ::testing::ElementsAre("stage"));
    EXPECT_NEAR(sign["correlation"].get<double>(), 0.849, 5e-4);
    EXPECT_NEAR(sign["pooled_correlation"].get<double>(), 0.995, 5e-4);
    EXPECT_NEAR(sign["forward_variation"].get<double>(), 0.025, 5e-4);
  } else {
    EXPECT_THAT(found, ::testing::ElementsAre("sequence-length", "stage"));
    EXPECT_NEAR(sign["correlation"].get<double>(), 0.992, 5e-4);
    EXPECT_NEAR(sign["pooled_correlation"].get<double>(), 0.884, 5e-4);
    EXPECT_NEAR(sign["forward_variation"].get<double>(), 0.21, 5e-4);
  }
}

std::string node_name(const OpNode& node) {
  return std::string(to_text(node.type)) + "_" + std::to_string(node.seq) + "_" +
         std::to_string(node.stage);
}

TEST_P(WhatIf, DependenciesAreTheArtifacts) {
  const Json theirs = parse_json(slurp(folder("extra/depgraph-" + name() + ".json")), "depgraph");
  Trace rows = read_trace(trace());
  sort_rows(rows);
  const OpTable table = make_op_table(rows, "trace", {}, nullptr);
  const DependencyGraph graph =
      make_dependency_graph(table, JobMeta{.dsp_size = name() == "SE" ? 2 : 1}, "trace", nullptr);

  using Names = std::set<std::string>;
  std::set<Names> groups, their_groups;
  Names synced, their_synced;
  for (const CommGroup& group : graph.groups) {
    Names names;
    for (const std::uint32_t m : group.members) {
      names.insert(node_name(table.nodes[m]));
    }
    if (group.scope != Scope::kLane) {
      synced.insert(names.begin(), names.end());
    }
    groups.insert(names);
  }
  for (const Json& group : theirs["comm_groups"]) {
    their_groups.insert(group.get<Names>());
  }
  for (const Json& node : theirs["need_dp_sync"]) {
    their_synced.insert(node.get<std::string>());
  }
  EXPECT_EQ(groups, their_groups);
  EXPECT_EQ(synced, their_synced);

  std::size_t with_predecessors = 0;
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    Names names, their_names;
    for (const std::uint32_t p : graph.predecessors[n]) {
      names.insert(node_name(table.nodes[p]));
    }
    const std::string node = node_name(table.nodes[n]);
    if (theirs["deps"].contains(node)) {
      their_names = theirs["deps"][node].get<Names>();
    }
    with_predecessors += names.empty() ? 0U : 1U;
    EXPECT_EQ(names, their_names) << node;
  }
  EXPECT_GT(with_predecessors, 50U);
}

INSTANTIATE_TEST_SUITE_P(Traces, WhatIf, ::testing::Values("ST", "SE"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace lockstep::whatif::whatif_reference_test
