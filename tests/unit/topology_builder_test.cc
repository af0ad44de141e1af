#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "topologies/builder.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace lockstep::topology_builder_test {
namespace {

using ::testing::HasSubstr;

struct Counts {
  std::string_view what;  // as --topology takes it
  std::int32_t gpus, nvswitches, switches;
  std::size_t links;
  int tiers;
};

void expect_counts(const Counts& c) {
  SCOPED_TRACE(c.what);
  const Topology t = topology_from(c.what);
  EXPECT_EQ(t.count(NodeKind::kGpu), c.gpus);
  EXPECT_EQ(t.count(NodeKind::kNvSwitch), c.nvswitches);
  EXPECT_EQ(t.count(NodeKind::kSwitch), c.switches);
  EXPECT_EQ(t.links.size(), c.links);
  int tiers = 0;
  for (const Node& node : t.nodes) {
    tiers = std::max<int>(tiers, node.tier);
  }
  EXPECT_EQ(tiers, c.tiers);
}

TEST(TopologyBuilders, HandCountedNodesAndLinks) {
  const std::vector<Counts> cases = {
      // SimAI's header lines: 90 8 2 72 544; 4736 8 512 128 12288; 17640 8 1920 360 74880.
      {"Spectrum-X:g=16", 16, 2, 72, 544, 2},
      {"Spectrum-X", 4096, 512, 128, 12288, 2},
      {"AlibabaHPN", 15360, 1920, 360, 74880, 2},
      // Dual plane: 16 ASWs, 6 PSWs, 3 in each plane: 64 + 2 * 64 + 8 * 3 + 8 * 3.
      {"AlibabaHPN:g=64,dp,asn=16,psn=6", 64, 8, 22, 240, 2},
      // An odd PSW goes to the first plane: 8 * 3 + 8 * 2.
      {"AlibabaHPN:g=64,dp,asn=16,psn=5", 64, 8, 21, 232, 2},
      // 512 GPUs in 8 groups of 64: 512 + 512 + 8 * 8.
      {"DCN+", 512, 64, 16, 1088, 2},
      {"rail-optimised", 128, 16, 72, 768, 2},
      {"plain:g=64,psn=2", 64, 8, 3, 130, 2},
      {"single-switch", 16, 2, 1, 32, 1},
      {"full-mesh", 8, 0, 0, 28, 0},
      // k = 4: 16 GPUs, 8 edges, 8 aggregations, 4 cores; 16 + 16 + 16 + 16 links.
      {"fat-tree:k=4", 16, 2, 20, 64, 3},
      // 3 * 4 * 1: 12 links along x (3 > 2) and 12 along y; 24 GPUs with an NVSwitch for each two.
      {"torus:shape=3x4,gpus-per-router=2,gps=2", 24, 12, 12, 72, 1},
      // Along x there are two routers: one link, not two. 2 * 2 * 2 has 3 * 4.
      {"torus:shape=2x2x2,gpus-per-router=1,gps=1,nsps=0", 8, 0, 8, 20, 1},
      // a * h + 1 = 9 groups: 288 GPUs; 9 * 6 local, 36 * 1 global.
      {"dragonfly", 288, 36, 36, 666, 1},
      // 5 groups of 4 routers: floor(8 / 4) = 2 links a pair: 30 local, 20 global.
      {"dragonfly:groups=5", 160, 20, 20, 370, 1},
      {"dragonfly:groups=1", 32, 4, 4, 70, 1},
      // Pods of 512 GPUs: 8 leaves, 8 spines; 16 cores: 1024 + 1024 + 2 * 64 + 2 * 16.
      {"pods", 1024, 128, 48, 2208, 3},
      // 8 racks of 72, 4 rails, 18 spines: 576 + 576 + 72.
      {"nvl72", 576, 8, 22, 1224, 2},
      // 8 + 8 servers, 8 + 8 leaves, 16 spines: 256 + 256.
      {"heterogeneous", 128, 16, 32, 512, 2},
  };
  for (const Counts& c : cases) {
    expect_counts(c);
  }
}

TEST(TopologyBuilders, TheWholeTableBuildsValidatesAndRoundTrips) {
  std::set<std::string_view> names;
  ASSERT_GE(topology_builders().size(), 13U);
  for (const TopologyBuilder* builder : topology_builders()) {
    SCOPED_TRACE(builder->name);
    EXPECT_TRUE(names.insert(builder->name).second);
    EXPECT_FALSE(builder->summary.empty());
    EXPECT_EQ(find_topology_builder(builder->name), builder);
    const BuiltTopology built = build_topology(*builder, FlagValues::from_compact(*builder, ""));
    EXPECT_EQ(built.topology.name, built.file_name);
    EXPECT_EQ(built.file_name.find('/'), std::string::npos);
    EXPECT_TRUE(parse_topology_json(to_json_text(built.topology), "t.json") == built.topology);
    if (built.topology.gpu_types.size() == 1) {
      const std::string text = to_simai_text(built.topology);
      Topology back = parse_topology(text, built.file_name);
      EXPECT_TRUE(back == built.topology);
    }
    for (const BuilderFlag& flag : builder->flags) {
      SCOPED_TRACE(flag.names);
      EXPECT_FALSE(flag.summary.empty());
      const std::string_view first = flag.names.substr(0, flag.names.find(' '));
      // The default passes its own check.
      EXPECT_NO_THROW(FlagValues::from_compact(
          *builder, std::string(first) + "=" + std::string(flag.fallback)));
    }
  }
}

TEST(TopologyBuilders, TorusWrapsAround) {
  // 3 routers in a ring, one GPU each: links GPU-router, then 3-4, 4-5, 5-3.
  const Topology t = topology_from("torus:shape=3,gpus-per-router=1,gps=1,nsps=0");
  ASSERT_EQ(t.links.size(), 6U);
  EXPECT_EQ(t.links[3].a, NodeId(3));
  EXPECT_EQ(t.links[3].b, NodeId(4));
  EXPECT_EQ(t.links[5].a, NodeId(5));
  EXPECT_EQ(t.links[5].b, NodeId(3));
}

TEST(TopologyBuilders, DragonflyUsesEveryGlobalPortOnce) {
  // a = 2, h = 1, so 3 groups of 2 routers with one global link each: routers 6 to 11.
  // Group 0: router 6 to group 1, router 7 to group 2. Group 1: port 0 to group 0, port 1 to 2.
  const Topology t = topology_from("dragonfly:p=1,a=2,gl=1,gps=1,nsps=0");
  ASSERT_EQ(t.links.size(), 6U + 3U + 3U);
  const auto ends = [&](std::size_t i) {
    return std::pair(t.links[i].a.value, t.links[i].b.value);
  };
  EXPECT_EQ(ends(9), std::pair(6, 8));
  EXPECT_EQ(ends(10), std::pair(7, 10));
  EXPECT_EQ(ends(11), std::pair(9, 11));
}

TEST(TopologyBuilders, HeterogeneousKeepsBothKindsApart) {
  const Topology t = topology_from("mixed:gpus-a=8,gpus-b=4,gpus-per-server-b=4,spine-switches=1");
  EXPECT_EQ(t.gpu_types, (std::vector<std::string>{"H100", "A100"}));
  EXPECT_EQ(t.nodes[7].gpu_type, 0);
  EXPECT_EQ(t.nodes[8].gpu_type, 1);
  EXPECT_EQ(t.nodes[8].server, 1);
  EXPECT_EQ(t.nodes[13].server, 1);  // the second NVSwitch
  EXPECT_THROW(to_simai_text(t), Error);
}

std::string problem_of(std::string_view text) {
  try {
    topology_from(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
  return "no error";
}

TEST(TopologyFrom, SaysWhatIsWrong) {
  EXPECT_THAT(problem_of("Spectrum-Y"), HasSubstr("did you mean Spectrum-X?"));
  EXPECT_THAT(problem_of("no/such/file.txt"), HasSubstr("neither a file nor"));
  EXPECT_THAT(problem_of(""), HasSubstr("neither a file nor"));
  EXPECT_THAT(problem_of("Spectrum-X:gpsu=8"), HasSubstr("did you mean gpus?"));
  EXPECT_THAT(problem_of("Spectrum-X:g"), HasSubstr("needs a value"));
  EXPECT_THAT(problem_of("Spectrum-X:g="), HasSubstr("from 1 to"));
  EXPECT_THAT(problem_of("Spectrum-X:g=8,"), HasSubstr("no flag ''"));
  EXPECT_THAT(problem_of("Spectrum-X:g=8,gpu=16"), HasSubstr("given twice"));
  EXPECT_THAT(problem_of("Spectrum-X:g=0"), HasSubstr("from 1 to"));
  EXPECT_THAT(problem_of("Spectrum-X:g=1e18"), HasSubstr("from 1 to"));
  EXPECT_THAT(problem_of("Spectrum-X:bw=0Gbps"), HasSubstr("no positive rate"));
  EXPECT_THAT(problem_of("Spectrum-X:bw=fast"), HasSubstr("flag nic"));
  EXPECT_THAT(problem_of("Spectrum-X:er=2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(problem_of("Spectrum-X:gt=a b"), HasSubstr("one word"));
  EXPECT_THAT(problem_of("Spectrum-X:g=8,ro=maybe"), HasSubstr("true or false"));
  EXPECT_THAT(problem_of("torus:shape=4x"), HasSubstr("joined by x"));
  EXPECT_THAT(problem_of("torus:shape=4096x4096"), HasSubstr("too many routers"));
  EXPECT_THAT(problem_of("fat-tree:k=3"), HasSubstr("even number of ports"));
  EXPECT_THAT(problem_of("dragonfly:groups=10"), HasSubstr("at most a * h + 1 = 9"));
  EXPECT_THAT(problem_of("pods:pods=3"), HasSubstr("divisor of the number of servers"));
  EXPECT_THAT(problem_of("pods:csn=12"), HasSubstr("multiple of spine-switches"));
  EXPECT_THAT(problem_of("plain:g=1048576,gps=1,nsps=0,npa=1,app=1048576,psn=1000"),
              HasSubstr("links"));
}

TEST(TopologyFrom, SimaisLimitsAreErrors) {
  // The generator dies, or leaves a truncated file, in each of these.
  EXPECT_THAT(problem_of("DCN+:g=100"), HasSubstr("do not fill servers of 8"));
  EXPECT_THAT(problem_of("plain:dp"), HasSubstr("no dual plane"));
  EXPECT_THAT(problem_of("plain:ro,dp"), HasSubstr("no dual plane"));
  EXPECT_THAT(problem_of("Spectrum-X:g=4608"), HasSubstr("9 segments, but one pod holds 8"));
  EXPECT_THAT(problem_of("DCN+:g=1024"), HasSubstr("16 segments, but one pod holds 8"));
  // Dual ToR halves what a spine of DCN+ holds: 8 / 2 segments of 128 GPUs.
  EXPECT_THAT(problem_of("DCN+:dt,g=640"), HasSubstr("5 segments, but one pod holds 4"));
  // Without spines the rails are apart: GPUs of different rails and servers cannot meet.
  EXPECT_THAT(problem_of("Spectrum-X:g=16,psn=0"), HasSubstr("cannot be reached"));
  EXPECT_EQ(problem_of("Spectrum-X:g=8,psn=0"), "no error");
}

TEST(TopologyFrom, TakesEverySpellingOfAFlag) {
  const Topology expected = topology_from("rail-optimised:g=32,bw=200Gbps,gt=A100,psn=8,ro");
  for (const char* same :
       {"rail-optimised:gpus=32,nic=200Gbps,gpu-type=A100,spine-switches=8",
        "PLAIN: RO, G=32 ,bw=200Gbps,gt=A100,psn=8",
        "rail:gpu=32,bandwidth=200Gbps,gpu_type=A100,psw_switch_num=8,ro=true"}) {
    EXPECT_TRUE(topology_from(same) == expected) << same;
  }
  const TopologyBuilder& plain = *find_topology_builder("plain");
  const std::vector<std::string> words{"-g", "32",  "--bandwidth=200Gbps", "-gt=A100", "-psn",
                                       "8",  "--ro"};
  EXPECT_TRUE(build_topology(plain, FlagValues::from_words(plain, words)).topology == expected);
}

TEST(TopologyFrom, WordsOfACommandLineAreChecked) {
  const TopologyBuilder& plain = *find_topology_builder("plain");
  const auto problem = [&](std::vector<std::string> words) -> std::string {
    try {
      FlagValues::from_words(plain, words);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(problem({"128"}), HasSubstr("'128' is no flag"));
  EXPECT_THAT(problem({"-"}), HasSubstr("is no flag"));
  EXPECT_THAT(problem({"-g"}), HasSubstr("needs a value"));
  EXPECT_THAT(problem({"-g", "-8"}), HasSubstr("from 1 to"));
  EXPECT_THAT(problem({"-bww", "1Gbps"}), HasSubstr("did you mean bw?"));
}

TEST(TopologyFrom, WarnsOfLeafSwitchesThatWereGiven) {
  std::vector<std::string> warnings;
  topology_from("Spectrum-X:g=1024", &warnings);
  EXPECT_TRUE(warnings.empty());
  topology_from("Spectrum-X:g=1024,asn=7", &warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "leaf-switches: 16 in place of 7, as 1024 GPUs need");
  warnings.clear();
  topology_from("Spectrum-X:g=1024,asn=16", &warnings);
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace lockstep::topology_builder_test
