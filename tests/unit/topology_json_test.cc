#include "topologies/topology_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "topologies/topology_file.h"

namespace lockstep::topology_json_test {
namespace {

// A server of two H100, one of three A100, a leaf of 100 and one of 200 Gbps under one spine.
constexpr const char* kMixed = R"({
  "schema": "lockstep-topology/1",
  "name": "mixed",
  "gpus_per_server": 2,
  "gpu_types": ["H100", "A100"],
  "link_classes": [
    {"rate": "2880Gbps", "delay": "0.000025ms", "error_rate": "0"},
    {"rate": "100Gbps", "delay": "0.0005ms", "error_rate": "0"},
    {"rate": "200Gbps", "delay": "0.0005ms", "error_rate": "0.001"}
  ],
  "nodes": [
    {"kind":"gpu","count":2,"gpu_type":"H100","server":0},
    {"kind":"gpu","count":3,"gpu_type":"A100","server":1},
    {"kind":"nvswitch","count":2,"server":0,"per_server":1},
    {"kind":"switch","count":2,"tier":1},
    {"kind":"switch","count":1,"tier":2}
  ],
  "links": [
    [0, 5, 0],
    [1, 5, 0],
    [2, 6, 0],
    [3, 6, 0],
    [4, 6, 0],
    [0, 7, 1],
    [1, 7, 1],
    [2, 8, 2],
    [3, 8, 2],
    [4, 8, 2],
    [7, 9, 2],
    [8, 9, 2]
  ]
}
)";

std::string problem_of(const std::string& from, const std::string& to) {
  std::string text = kMixed;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    parse_topology(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("t.json"));
    return error.what();
  }
  return "no error";
}

TEST(TopologyJson, HoldsWhatSimaisTextCannot) {
  const Topology t = parse_topology(kMixed, "t.json");
  EXPECT_EQ(t.name, "mixed");
  EXPECT_EQ(t.count(NodeKind::kGpu), 5);
  EXPECT_EQ(t.nodes[4].server, 1);
  EXPECT_EQ(t.nodes[4].gpu_type, 1);
  EXPECT_EQ(t.nodes[6].server, 1);
  EXPECT_EQ(t.nodes[9].tier, 2);
  EXPECT_EQ(t.class_of(LinkId(11)).error_rate, 0.001);
  EXPECT_EQ(to_json_text(t), kMixed);
}

TEST(TopologyJson, TiersMayBeLeftOut) {
  std::string text = kMixed;
  for (const std::string tier : {",\"tier\":1", ",\"tier\":2"}) {
    text.erase(text.find(tier), tier.size());
  }
  EXPECT_TRUE(parse_topology(text, "t.json") == parse_topology(kMixed, "t.json"));
}

TEST(TopologyJson, SaysWhatIsWrongAndWhere) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(problem_of("topology/1", "topology/2"), HasSubstr("\"lockstep-topology/1\""));
  EXPECT_THAT(problem_of("\"name\"", "\"nam\""), HasSubstr("did you mean \"name\"?"));
  EXPECT_THAT(problem_of("\"name\": \"mixed\",", ""), HasSubstr("\"name\" is missing"));
  EXPECT_THAT(problem_of("100Gbps", "0Gbps"),
              AllOf(HasSubstr("link_classes[1]"), HasSubstr("no positive rate")));
  EXPECT_THAT(problem_of("100Gbps", "100"), HasSubstr("unit of bandwidth"));
  EXPECT_THAT(problem_of("0.001", "7"), HasSubstr("loss probability"));
  EXPECT_THAT(problem_of("200Gbps\", \"delay\": \"0.0005ms\", \"error_rate\": \"0.001",
                         "100Gbps\", \"delay\": \"0.0005ms\", \"error_rate\": \"0"),
              HasSubstr("stands twice"));
  EXPECT_THAT(problem_of("\"nvswitch\"", "\"router\""),
              AllOf(HasSubstr("nodes[2].kind"), HasSubstr("gpu, nvswitch or switch")));
  EXPECT_THAT(problem_of("\"count\":3", "\"count\":0"), HasSubstr("nodes[1].count"));
  EXPECT_THAT(problem_of("\"count\":3", "\"count\":2000000000"),
              AllOf(HasSubstr("nodes[1]"), HasSubstr("12 links reach no more")));
  EXPECT_THAT(problem_of("\"gpu_type\":\"A100\"", "\"gpu_type\":\"B200\""),
              HasSubstr("\"B200\" is not listed"));
  EXPECT_THAT(problem_of("\"server\":1}", "\"server\":-1}"), HasSubstr("nodes[1].server"));
  EXPECT_THAT(problem_of("\"tier\":2", "\"tier\":2,\"server\":0"), HasSubstr("no such field"));
  EXPECT_THAT(problem_of("[7, 9, 2]", "[7, 10, 2]"),
              AllOf(HasSubstr("links[10][1]"), HasSubstr("from 0 to 9")));
  EXPECT_THAT(problem_of("[7, 9, 2]", "[7, 7, 2]"), HasSubstr("to itself"));
  EXPECT_THAT(problem_of("[7, 9, 2]", "[7, 9, 3]"), HasSubstr("links[10][2]"));
  EXPECT_THAT(problem_of("[7, 9, 2]", "[7, 9]"), HasSubstr("expected [a, b, class]"));
  EXPECT_THAT(problem_of("[7, 9, 2]", "{}"), HasSubstr("expected [a, b, class]"));
  EXPECT_THAT(problem_of("[7, 9, 2]", "[7, 8.5, 2]"), HasSubstr("whole number"));
  EXPECT_THAT(problem_of("[8, 9, 2]", "[7, 9, 2]"), HasSubstr("cannot be reached"));
  EXPECT_THAT(problem_of("[8, 9, 2]\n  ]", "[8, 9, 2]\n"), HasSubstr("not valid JSON"));
}

TEST(TopologyJson, WhatAValidTopologyIs) {
  const Topology good = parse_topology(kMixed, "t.json");
  EXPECT_NO_THROW(validate(good));
  const auto spoil = [&](auto&& f) {
    Topology t = good;
    f(t);
    EXPECT_THROW(validate(t), Error);
  };
  spoil([](Topology& t) { t.gpu_types.clear(); });
  spoil([](Topology& t) { t.gpus_per_server = 0; });
  spoil([](Topology& t) { t.nodes[0].server = -1; });
  spoil([](Topology& t) { t.nodes[0].gpu_type = 2; });
  spoil([](Topology& t) { t.links[0].a = NodeId(10); });
  spoil([](Topology& t) { t.links[0].a = NodeId(); });
  spoil([](Topology& t) { t.links[0].b = t.links[0].a; });
  spoil([](Topology& t) { t.links[0].link_class = 3; });
  spoil([](Topology& t) { t.link_classes[1].rate = Bandwidth(); });
  spoil([](Topology& t) { t.link_classes[1].error_rate = -0.5; });
  spoil([](Topology& t) { t.links.pop_back(); });
  spoil([](Topology& t) { t = Topology(); });
  // An NVSwitch does not forward to another server: GPU 0 of server 0 on NVSwitch 6 of server 1.
  spoil([](Topology& t) {
    t.links.resize(5);
    t.links.push_back({NodeId(5), NodeId(6), 0});
  });
}

TEST(Validate, NamesTheGpuThatFewestReach) {
  Topology t = parse_topology(kMixed, "t.json");
  t.links.erase(t.links.begin() + 5);  // GPU 0 keeps only its NVSwitch
  try {
    validate(t);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("GPU 0 cannot be reached from GPU 2"));
  }
}

}  // namespace
}  // namespace lockstep::topology_json_test
