// Servers by what links their GPUs: the engines agree on one another, and no collective goes beyond
// the links.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "tests/support/run.h"

namespace lockstep::server_links_test {
namespace {

using testing::run;
using testing::RunResult;

/// Seconds of a collective of `size` on the topology, by engine.
Json seconds(const std::string& op, const std::string& gpus, const std::string& topology,
             std::string engines) {
  engines += WITH_PACKETS ? ",packet" : "";
  const RunResult result = run({"collective", "--op", op, "--gpus", gpus, "--size", "64MiB",
                                "--topology", topology, "--engine", engines, "--json", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json of_engine = parse_json(result.out, "collective")["points"][0]["engines"];
  Json times;
  for (const auto& [engine, figures] : of_engine.items()) {
    times[engine] = figures["time_s"];
  }
  return times;
}

void expect_packets_agree(const Json& times, double within) {
  if (WITH_PACKETS) {  // else the build has no ns-3
    EXPECT_NEAR(times["packet"].get<double>() / times["flow"].get<double>(), 1, within);
  }
}

constexpr double kBytes = 64.0 * 1024 * 1024;

// The link between two GPUs, 50 GB/s, is all they have: 64 MiB take 1.342 ms, and 1.5 % of headers.
// A window of so short a way holds no fewer packets than two of its ACKs confirm.
TEST(ServerLinks, DirectLinksCarryWhatTheyCan) {
  const Json times = seconds("sendrecv", "2", "full-mesh:g=8", "analytic,flow");
  EXPECT_NEAR(times["analytic"].get<double>(), kBytes / 50e9, 1e-6);
  EXPECT_NEAR(times["flow"].get<double>(), kBytes / 50e9 * (1 + 62.0 / 4096), 20e-6);
  expect_packets_agree(times, 0.001);
  const Json sums = seconds("allreduce", "8", "full-mesh:g=8", "flow");
  expect_packets_agree(sums, 0.02);
  const Json slow = seconds("sendrecv", "2", "full-mesh:g=8,nvbw=100Gbps", "analytic");
  EXPECT_NEAR(slow["analytic"].get<double>(), kBytes / 12.5e9, 1e-6);
}

// Without NVLinks GPUs of a server meet over their NICs.
TEST(ServerLinks, WithoutNvlinksTheNicsCarryAll) {
  const Json times = seconds("allreduce", "8", "single-switch:g=8,nsps=0", "analytic,flow");
  const double ring = kBytes * 2 * 7 / 8 / 50e9;
  EXPECT_NEAR(times["analytic"].get<double>() / ring, 1, 0.01);
  EXPECT_NEAR(times["flow"].get<double>() / ring, 1, 0.03);
}

// Four NVSwitches with a quarter of the links each are one with all of them, but for pieces that
// are four times as long on their way: what is added is shared out.
TEST(ServerLinks, NvswitchesShareWhatTheyAdd) {
  const std::string one = "Spectrum-X:g=8", four = "Spectrum-X:g=8,nsps=4,nvbw=720Gbps";
  const Json with_one = seconds("allreduce", "8", one, "analytic,flow");
  const Json with_four = seconds("allreduce", "8", four, "analytic,flow");
  EXPECT_EQ(with_four["analytic"], with_one["analytic"]);
  EXPECT_LT(with_four["flow"].get<double>() / with_one["flow"].get<double>(), 1.25);
  expect_packets_agree(with_four, 0.02);
}

// Of a topology with slower servers too, a job on the quick ones has theirs, and a server's GPUs
// are counted, whatever gpus_per_server says.
TEST(ServerLinks, ThoseOfTheJobsGpusCount) {
  const Json quick = seconds("allreduce", "8", "heterogeneous:gpus-a=8,gpus-b=8", "analytic");
  const Json alone = seconds("allreduce", "8", "single-switch:g=8", "analytic");
  EXPECT_EQ(quick["analytic"], alone["analytic"]);
}

// Two servers of unequal size share leaf 5: GPU 1 reaches GPU 2 by it, not by its neighbour's leaf
// and a spine of a quarter of the rate, though it is the second of its server and GPU 2 the first.
TEST(ServerLinks, GpusOnOneLeafNeedNoRelay) {
  const testing::ScratchFolder folder;
  write_file(folder / "t.json", R"({"schema": "lockstep-topology/1", "name": "unequal",
    "gpus_per_server": 2, "gpu_types": ["H100"],
    "link_classes": [{"rate": "2880Gbps", "delay": "25ns"}, {"rate": "400Gbps", "delay": "500ns"},
                     {"rate": "100Gbps", "delay": "500ns"}],
    "nodes": [{"kind": "gpu", "count": 2, "server": 0}, {"kind": "gpu", "count": 1, "server": 1},
              {"kind": "nvswitch", "count": 1, "server": 0}, {"kind": "switch", "count": 3}],
    "links": [[0, 3, 0], [1, 3, 0], [0, 4, 1], [1, 5, 1], [2, 5, 1], [4, 6, 2], [5, 6, 2]]})");
  for (const char* pxn : {"--pxn", "--no-pxn"}) {
    const RunResult result =
        run({"collective", "--op", "sendrecv", "--gpus", "2", "--size", "64MiB", "--topology",
             folder / "t.json", "--placement", "1,2", "--engine", "flow", "--json", "-q", pxn});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json point = parse_json(result.out, "collective")["points"][0];
    EXPECT_NEAR(point["engines"]["flow"]["time_s"].get<double>(), 1.386e-3, 2e-5) << pxn;
  }
}

// Where servers differ the slowest one's links are everybody's.
TEST(ServerLinks, OfServersThatDifferTheSlowestCounts) {
  const Json times = seconds("allreduce", "16", "heterogeneous:gpus-a=8,gpus-b=8", "analytic");
  EXPECT_GE(times["analytic"].get<double>(), kBytes * 2 * 15 / 16 / 200e9);  // 8 NICs of 25 GB/s
}

/// Seconds of a step that is an all-reduce of 64 MiB over ranks first to end - 1.
double sum_in_step(int first, int end, const std::string& topology) {
  const testing::ScratchFolder folder;
  std::string ranks = std::to_string(first);
  for (int rank = first + 1; rank < end; ++rank) {
    ranks += "," + std::to_string(rank);
  }
  write_file(folder / "sum.json", fmt::format(R"({{"schema": "lockstep-workload/1",
    "jobs": [{{"name": "sum", "parallel": {{"gpus": {1}}}, "op_table": {{
      "groups": [{{"name": "tp", "members": [[{2}]]}}],
      "programs": [{{"ranks": [{{"first": {0}, "end": {1}}}], "streams": ["tp"],
        "ops": [{{"stream": "tp", "comm": "allreduce", "group": "tp", "bytes": 67108864}}]}}]}}}}]}})",
                                              first, end, ranks));
  const RunResult result = run({"simulate", "--workload", folder / "sum.json", "--topology",
                                topology, "--verify-symmetry", "--json", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0 ? parse_json(result.out, "simulate")["total_s"].get<double>() : 0;
}

// NCCL looks at the GPUs of a group, not at the first ones of the cluster: a step's group on A100s
// beside H100s takes a ring, as on A100s alone, where the H100s add in their NVSwitch.
TEST(ServerLinks, GroupsOfAStepTakeWhatTheirOwnServersHave) {
  const std::string rates = "heterogeneous:gpus-a=8,gpus-b=8,nvlink-a=1920Gbps,nic-a=200Gbps";
  const double h100 = sum_in_step(0, 8, rates + ",type-b=A100");
  const double a100 = sum_in_step(0, 8, rates + ",type-a=A100,type-b=A100");
  EXPECT_LT(h100, 0.98 * a100);
  EXPECT_EQ(sum_in_step(8, 16, rates + ",type-b=A100"), a100);
  EXPECT_EQ(sum_in_step(8, 16, rates + ",type-a=A100,type-b=H100"), h100);
}

// A server whose GPUs are linked two by two has no switch that could add, whatever the first has.
TEST(ServerLinks, OnlyServersWithNvswitchesAddInThem) {
  const testing::ScratchFolder folder;
  const auto topology = [&](const std::string& nvswitch, const std::string& first) {
    write_file(folder / "t.json", fmt::format(R"({{"schema": "lockstep-topology/1", "name": "two",
      "gpus_per_server": 3, "gpu_types": ["H100"],
      "link_classes": [{{"rate": "1440Gbps", "delay": "25ns"}},
                       {{"rate": "400Gbps", "delay": "500ns"}}],
      "nodes": [{{"kind": "gpu", "count": 6, "server": 0, "per_server": 3}},
                {{"kind": "switch", "count": 1}}{}],
      "links": [{}, [3, 4, 0], [3, 5, 0], [4, 5, 0],
                [0, 6, 1], [1, 6, 1], [2, 6, 1], [3, 6, 1], [4, 6, 1], [5, 6, 1]]}})",
                                              nvswitch, first));
    return folder / "t.json";
  };
  const double alone = sum_in_step(0, 3, topology("", "[0, 1, 0], [0, 2, 0], [1, 2, 0]"));
  const std::string mixed =
      topology(R"(, {"kind": "nvswitch", "server": 0})",
               "[0, 7, 0], [0, 7, 0], [1, 7, 0], [1, 7, 0], [2, 7, 0], [2, 7, 0]");
  EXPECT_EQ(sum_in_step(3, 6, mixed), alone);
  EXPECT_GT(sum_in_step(0, 6, mixed), alone);
}

}  // namespace
}  // namespace lockstep::server_links_test
