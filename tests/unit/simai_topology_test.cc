#include "topologies/simai_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "topologies/topology_file.h"

namespace lockstep::simai_topology_test {
namespace {

// Two servers of two GPUs, NVSwitches 4 and 5, leaves 6 and 7, spine 8.
constexpr const char* kSmall =
    "9 2 2 3 10 H100\n"
    "4 5 6 7 8 \n"
    "0 4 2880Gbps 0.000025ms 0\n"
    "0 6 400Gbps 0.0005ms 0\n"
    "1 4 2880Gbps 0.000025ms 0\n"
    "1 7 400Gbps 0.0005ms 0\n"
    "2 5 2880Gbps 0.000025ms 0\n"
    "2 6 400Gbps 0.0005ms 0\n"
    "3 5 2880Gbps 0.000025ms 0\n"
    "3 7 400Gbps 0.0005ms 0\n"
    "6 8 800Gbps 0.0005ms 0.25\n"
    "7 8 800Gbps 0.0005ms 0.25\n";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string problem_of(const std::string& text) {
  try {
    parse_topology(text, "t.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
  return "no error";
}

TEST(SimaiTopology, ReadsNodesLinksServersAndTiers) {
  const Topology t = parse_topology(kSmall, "t.txt");
  EXPECT_EQ(t.nodes.size(), 9U);
  EXPECT_EQ(t.count(NodeKind::kGpu), 4);
  EXPECT_EQ(t.count(NodeKind::kNvSwitch), 2);
  EXPECT_EQ(t.count(NodeKind::kSwitch), 3);
  EXPECT_EQ(t.gpu_types, std::vector<std::string>{"H100"});
  EXPECT_EQ(t.gpus_per_server, 2);
  EXPECT_EQ(t.nodes[1].server, 0);
  EXPECT_EQ(t.nodes[2].server, 1);
  EXPECT_EQ(t.nodes[5].server, 1);  // NVSwitch of GPUs 2 and 3
  EXPECT_EQ(t.nodes[6].server, -1);
  EXPECT_EQ(t.nodes[6].tier, 1);
  EXPECT_EQ(t.nodes[8].tier, 2);
  ASSERT_EQ(t.link_classes.size(), 3U);
  EXPECT_EQ(t.link_classes[0].delay, Time::ns(25));
  EXPECT_EQ(t.link_classes[1].rate, Bandwidth::gbps(400));
  EXPECT_EQ(t.link_classes[2].error_rate, 0.25);
  EXPECT_EQ(t.links[9], (Link{NodeId(7), NodeId(8), 2}));
  EXPECT_EQ(to_simai_text(t), kSmall);
}

TEST(SimaiTopology, TakesAnyBlanksAndKeepsSpellings) {
  std::string text = "\t9  2 2\t3 10   H100 \r\n\r\n  4 5\t6 7 8\r\n";
  const std::string links = std::string(kSmall).substr(std::string(kSmall).find("0 4"));
  for (const char c : links) {
    text += c == ' ' ? " \t" : c == '\n' ? "\r\n" : std::string(1, c);
  }
  text.pop_back();
  text.pop_back();  // the last line may lack its end
  EXPECT_EQ(to_simai_text(parse_topology(text, "t.txt")), kSmall);
  const Topology t = parse_topology(replaced("800Gbps", "100GB/s"), "t.txt");
  EXPECT_EQ(t.class_of(LinkId(8)).rate, t.class_of(LinkId(9)).rate);
  EXPECT_EQ(t.class_of(LinkId(8)).rate_text, "100GB/s");
  EXPECT_EQ(to_simai_text(t), replaced("800Gbps", "100GB/s"));
  // ns-3 takes exponents in times: 5e-4 ms = 500 ns.
  const Topology e = parse_topology(replaced("0.0005ms", "5e-4ms"), "t.txt");
  EXPECT_EQ(e.class_of(LinkId(1)).delay, Time::ns(500));
}

TEST(SimaiTopology, NodesMayBeNumberedInAnyOrder) {
  // A switch with the smallest id: GPU 1 and GPU 2 hang on switch 0. Both are in server i / 8 = 0.
  const Topology t =
      parse_topology("3 8 0 1 2 A100\n0\n1 0 1Gbps 1us 0\n2 0 1Gbps 1us 0\n", "t.txt");
  EXPECT_EQ(t.gpus(), (std::vector<NodeId>{NodeId(1), NodeId(2)}));
  EXPECT_EQ(t.nodes[0].tier, 1);
}

struct BadText {
  std::string text;
  std::vector<std::string> says;
};

TEST(SimaiTopology, BadFilesGetOneClearError) {
  const std::vector<BadText> cases = {
      {"", {"t.txt", "empty"}},
      {"\n \n", {"t.txt", "empty"}},
      {replaced("10 H100", "10"), {"t.txt:1:11", "gpu_type", "six fields"}},
      {replaced("10 H100", "10 H100 7"), {"t.txt:1:17", "one field too many"}},
      {replaced("H100", "H1\xff"), {"t.txt:1:12", "gpu_type", "plain ASCII"}},
      {replaced("9 2 2", "9x 2 2"), {"t.txt:1:1", "node_num", "'9x'"}},
      {replaced("9 2 2", "0 2 2"), {"t.txt:1:1", "node_num", "from 1"}},
      {replaced("9 2 2", "9 0 2"), {"t.txt:1:3", "gpus_per_server", "from 1"}},
      {replaced("9 2 2", "9 2 -1"), {"t.txt:1:5", "nvswitch_num"}},
      {replaced("9 2 2", "9 2 9"), {"t.txt:1:5", "nvswitch_num", "from 0 to 8"}},
      {replaced("9 2 2 3", "9 2 2 7"), {"t.txt:1:7", "switch_num", "from 0 to 6"}},
      {replaced("9 2 2", "1000000000 2 2"), {"t.txt:1", "node_num", "10 links reach at most 20"}},
      {replaced("9 2 2", "1000000000000000000 2 2"), {"t.txt:1:1", "node_num"}},
      {replaced("3 10 H100", "3 1000000000 H100"), {"t.txt:12", "after 10 of the 1000000000"}},
      {replaced("3 10 H100", "3 11 H100"), {"t.txt:12", "link_num", "after 10 of the 11"}},
      {replaced("3 10 H100", "3 9 H100"), {"t.txt:12:1", "link_num", "goes on after the 9"}},
      {replaced("4 5 6 7 8 ", "4 5 6 7 "), {"t.txt:2", "switch id", "5 ids"}},
      {replaced("4 5 6 7 8 ", "4 5 6 7 8 3"), {"t.txt:2:11", "one field too many"}},
      {replaced("4 5 6 7 8 ", "4 5 6 7 7 "), {"t.txt:2", "7 stands twice"}},
      {replaced("4 5 6 7 8 ", "4 5 6 7 9 "), {"t.txt:2:9", "'9'", "from 0 to 8"}},
      {"9 2 2 3 10 H100\n", {"t.txt:1", "ends after its header"}},
      {replaced("0 6 400", "0 0 400"), {"t.txt:4:3", "dst", "node 0 to itself"}},
      {replaced("0 6 400", "0 9 400"), {"t.txt:4:3", "dst", "from 0 to 8"}},
      {replaced("0 6 400", "-1 6 400"), {"t.txt:4:1", "src"}},
      {replaced("0 6 400Gbps", "0 6 0Gbps"), {"t.txt:4:5", "rate", "no positive rate"}},
      {replaced("0 6 400Gbps", "0 6 9.1e18bps"), {"t.txt:4:5", "rate", "at most 1000 Tbps"}},
      {replaced("0 6 400Gbps 0.0005ms", "0 6 400Gbps 2540h"),
       {"t.txt:4:", "delay", "at most 60 s"}},
      {replaced("0 6 400Gbps", "0 6 -400Gbps"), {"t.txt:4", "rate", "negative"}},
      {replaced("0 6 400Gbps", "0 6 400Gbs"), {"t.txt:4:5", "rate", "unit of bandwidth"}},
      {replaced("0 6 400Gbps", "0 6 nan"), {"t.txt:4", "rate"}},
      {replaced("0.0005ms 0\n1 4", "0.0005 0\n1 4"), {"t.txt:4:13", "delay", "unit of time"}},
      {replaced("0.0005ms 0\n1 4", "0.0005ms 1.5\n1 4"), {"t.txt:4:22", "error_rate", "0 to 1"}},
      {replaced("0.0005ms 0\n1 4", "0.0005ms -0.1\n1 4"), {"t.txt:4:22", "error_rate"}},
      {replaced("0.0005ms 0\n1 4", "0.0005ms\n1 4"), {"t.txt:4", "error_rate", "five fields"}},
      {replaced("0.0005ms 0\n1 4", "0.0005ms 0 0\n1 4"), {"t.txt:4:24", "one field too many"}},
      {replaced("1 4 2880", "1 5 2880"), {"NVSwitch 5", "servers 0 and 1", "t.txt:7"}},
      {replaced("2 5 2880Gbps 0.000025ms 0\n2 6", "2 5 2880Gbps 0.000025ms 0\n2 5"),
       {"t.txt", "GPU 2 cannot be reached from GPU 0"}},
  };
  for (const BadText& bad : cases) {
    const std::string problem = problem_of(bad.text);
    for (const std::string& part : bad.says) {
      EXPECT_THAT(problem, ::testing::HasSubstr(part)) << bad.text;
    }
  }
}

TEST(SimaiTopology, EveryTruncationIsAnError) {
  const std::string text = kSmall;
  // Without its last characters, "0.25\n", the file is whole again or an error; never a crash.
  for (std::size_t size = 0; size + 4 < text.size(); ++size) {
    EXPECT_NE(problem_of(text.substr(0, size)), "no error") << size;
  }
}

TEST(SimaiTopology, OnlyWhatTheTextCanHoldIsWritten) {
  Topology t = parse_topology(kSmall, "t.txt");
  t.gpu_types.emplace_back("A100");
  EXPECT_THROW(to_simai_text(t), Error);
  t.gpu_types = {"two words"};
  EXPECT_THROW(to_simai_text(t), Error);
  t.gpu_types = {"H100"};
  t.gpus_per_server = 4;
  EXPECT_THROW(to_simai_text(t), Error);
}

}  // namespace
}  // namespace lockstep::simai_topology_test
