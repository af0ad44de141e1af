// Goldens of what the report folder writes, small enough to read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "report/end_to_end_csv.h"
#include "report/port_loads.h"
#include "report/step_json.h"
#include "report/step_table.h"

namespace lockstep::report_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PhaseResult phase(std::int64_t compute_us, std::int64_t exposed_us = 0,
                  CommType comm = CommType::kNone, std::int64_t bytes = 0,
                  GroupKind group = GroupKind::kTp, std::int32_t ranks = 1) {
  PhaseResult p;
  p.compute = Time::us(compute_us);
  p.comm = p.exposed = Time::us(exposed_us);
  p.comm_type = comm;
  p.bytes = Bytes(bytes);
  p.group = group;
  p.group_size = ranks;
  return p;
}

/// 4 GPUs, TP 2: embedding, mlp twice (the second communicates nothing forward).
StepResult small_step() {
  constexpr std::int64_t kMiB = 1 << 20;
  StepResult r;
  r.workload = "some/folder/gpt.txt";
  r.topology = "two servers";
  r.engine = "flow";
  r.semantics = "simai";
  r.flavour = "default";
  r.parallel.gpus = r.gpus = 4;
  r.parallel.tp = 2;
  r.names = {"embedding_layer", "mlp"};
  r.layers.resize(3);
  r.layers[0].forward = phase(500, 100, CommType::kAllReduce, 16 * kMiB, GroupKind::kTp, 2);
  r.layers[1].name = r.layers[2].name = 1;
  r.layers[1].forward = phase(1000, 200, CommType::kAllGather, 32 * kMiB, GroupKind::kTp, 2);
  r.layers[1].weight_grad = phase(2000, 1000, CommType::kAllReduce, 64 * kMiB, GroupKind::kDp, 2);
  r.layers[2].forward = phase(1000);
  r.layers[2].weight_grad = phase(2000);
  r.compute = Time::us(6500);
  r.exposed = Time::us(1300);
  r.bubble = Time::us(200);
  r.exposed_by_group[0] = Time::us(300);
  r.exposed_by_group[1] = Time::us(1000);
  r.total = r.last_rank_end = Time::us(8000);
  r.first_rank_end = Time::us(7900);
  r.flows = 12;
  r.ports = {{Bytes(0), Time()}, {Bytes(96 * kMiB), Time::us(2000)}, {Bytes(kMiB), Time::us(4000)}};
  return r;
}

Topology small_topology() {
  Topology t;
  t.gpu_types = {"H100"};
  t.nodes = {{NodeKind::kGpu, 0, 0, 0}, {NodeKind::kNvSwitch, 0, 0, 0}, {NodeKind::kSwitch, 1}};
  t.link_classes = {{Bandwidth::gbps(400), Time::ns(500), 0, "400Gbps", "0.0005ms", "0"}};
  t.links = {{NodeId(0), NodeId(1), 0}, {NodeId(0), NodeId(2), 0}};
  return t;
}

TEST(StepTable, Golden) {
  const Topology topology = small_topology();
  EXPECT_EQ(step_table(small_step(), &topology), R"(step time  8 ms
gpt.txt on two servers, flow engine
4 GPUs: tp 2, pp 1, dp 2, ep 1, 1 micro-batch
ranks end between 7.9 ms and 8 ms

where the time goes                  us    share
  compute                      6500.000   81.2 %  ########################
  exposed communication        1300.000   16.2 %  #####
    TP                          300.000    3.8 %  #
    DP                         1000.000   12.5 %  ####
  pipeline bubble               200.000    2.5 %  #
  step                         8000.000  100.0 %

layers                                  count   compute us   exposed us    share
  mlp                                       2     6000.000     1200.000   90.0 %
  embedding_layer                           1      500.000      100.000    7.5 %

links                                              carried      busy us    share
  gpu 0 -> leaf 2                                    1 MiB     4000.000   50.0 %
  nvswitch 1 -> gpu 0                               96 MiB     2000.000   25.0 %
)");
}

TEST(StepTable, FitsAnyWidthAndAnyNames) {
  StepResult r = small_step();
  r.names[1] = std::string(300, 'x') + "\xc3\xa4\n";
  r.workload = std::string(200, 'w');
  r.jobs = {{std::string(100, 'j'), 0, 2, Time::us(7000)}, {"b", 2, 2, Time::us(8000)}};
  for (const std::size_t width :
       {std::size_t{0}, std::size_t{60}, std::size_t{80}, std::size_t{200}}) {
    const std::string table = step_table(r, nullptr, width);
    for (const std::string_view line : split(table, '\n')) {
      EXPECT_LE(line.size(), std::max<std::size_t>(width, 60)) << line;
    }
    EXPECT_THAT(table, HasSubstr("port 2"));
  }
}

TEST(StepTable, CutsNamesBetweenCharacters) {
  StepResult r = small_step();
  r.names[1].clear();
  for (int i = 0; i < 100; ++i) {
    r.names[1] += "\xc3\xa4";  // two bytes each
  }
  const std::string table = step_table(r);
  const auto begin = table.find("  \xc3\xa4");
  ASSERT_NE(begin, std::string::npos);
  const auto dots = table.find("..", begin);
  EXPECT_EQ((dots - begin - 2) % 2, 0U);
}

TEST(StepTable, SurvivesAnEmptyResult) {
  EXPECT_THAT(step_table(StepResult{}), StartsWith("step time  0 ps\n"));
}

TEST(StepTable, SaysHowManyNamesAndLinksAreLeftOut) {
  StepResult r = small_step();
  for (int i = 0; i < 11; ++i) {
    r.names.push_back("n" + std::to_string(i));
    r.ports.push_back({Bytes(1), Time::ps(1)});
  }
  const std::string table = step_table(r);
  EXPECT_THAT(table, HasSubstr("layers (top 10 of 13)"));
  EXPECT_THAT(table, HasSubstr("links (busiest 10 of 13)"));
}

TEST(BusiestPorts, TiesAreBrokenByPort) {
  StepResult r;
  r.total = Time::us(10);
  r.ports = {{Bytes(1), Time::us(1)}, {Bytes(1), Time::us(5)}, {Bytes(2), Time::us(5)}};
  const std::vector<PortLoad> loads = busiest_ports(r);
  ASSERT_EQ(loads.size(), 3U);
  EXPECT_EQ(loads[0].port, PortId(1));
  EXPECT_EQ(loads[1].port, PortId(2));
  EXPECT_EQ(loads[0].utilisation, 0.5);
}

TEST(StepJson, ContextParallelRanksAreNotDataParallel) {
  StepResult r = small_step();
  r.parallel.cp = 2;
  const Topology topology = small_topology();
  const Json parallel = Json::parse(step_json(r, &topology))["parallel"];
  EXPECT_EQ(parallel["cp"], 2);
  EXPECT_EQ(parallel["dp"], 1);
  EXPECT_THAT(step_table(r, &topology, 100), HasSubstr("4 GPUs: tp 2, cp 2, pp 1, dp 1, ep 1"));
}

TEST(StepJson, Golden) {
  StepResult r = small_step();
  r.layers.resize(2);
  r.warnings = {"one"};
  r.jobs = {{"job", 0, 4, Time::us(8000)}};
  const Topology topology = small_topology();
  EXPECT_EQ(step_json(r, &topology), R"({
  "schema": "lockstep-simulate/1",
  "workload": "some/folder/gpt.txt",
  "topology": "two servers",
  "engine": "flow",
  "semantics": "simai",
  "flavour": "default",
  "gpus": 4,
  "parallel": {
    "tp": 2,
    "ep": 1,
    "pp": 1,
    "vpp": 1,
    "ga": 1,
    "dp": 2
  },
  "total_s": 0.008,
  "compute_s": 0.0065,
  "exposed_s": 0.0013,
  "bubble_s": 0.0002,
  "skew_s": 0.0,
  "exposed_by_group": {
    "tp_s": 0.0003,
    "dp_s": 0.001,
    "ep_s": 0.0,
    "dp_ep_s": 0.0,
    "pp_s": 0.0,
    "cp_s": 0.0,
    "world_s": 0.0
  },
  "first_rank_end_s": 0.0079,
  "last_rank_end_s": 0.008,
  "flows": 12,
  "layers": [
    {
      "name": "embedding_layer",
      "forward": {
        "compute_s": 0.0005,
        "comm": "allreduce",
        "group": "tp",
        "ranks": 2,
        "size_bytes": 16777216,
        "comm_s": 0.0001,
        "exposed_s": 0.0001,
        "algorithm_Bps": 167772160000.0,
        "bus_Bps": 167772160000.0
      },
      "input_grad": {
        "compute_s": 0.0
      },
      "weight_grad": {
        "compute_s": 0.0
      }
    },
    {
      "name": "mlp",
      "forward": {
        "compute_s": 0.001,
        "comm": "allgather",
        "group": "tp",
        "ranks": 2,
        "size_bytes": 33554432,
        "comm_s": 0.0002,
        "exposed_s": 0.0002,
        "algorithm_Bps": 167772160000.0,
        "bus_Bps": 83886080000.0
      },
      "input_grad": {
        "compute_s": 0.0
      },
      "weight_grad": {
        "compute_s": 0.002,
        "comm": "allreduce",
        "group": "dp",
        "ranks": 2,
        "size_bytes": 67108864,
        "comm_s": 0.001,
        "exposed_s": 0.001,
        "algorithm_Bps": 67108864000.0,
        "bus_Bps": 67108864000.0
      }
    }
  ],
  "jobs": [
    {
      "name": "job",
      "first_rank": 0,
      "ranks": 4,
      "end_s": 0.008
    }
  ],
  "links": [
    {
      "port": 2,
      "from": "gpu 0",
      "to": "leaf 2",
      "rate_Bps": 50000000000.0,
      "carried_bytes": 1048576,
      "busy_s": 0.004,
      "utilisation": 0.5
    },
    {
      "port": 1,
      "from": "nvswitch 1",
      "to": "gpu 0",
      "rate_Bps": 50000000000.0,
      "carried_bytes": 100663296,
      "busy_s": 0.002,
      "utilisation": 0.25
    }
  ],
  "warnings": [
    "one"
  ]
}
)");
}

TEST(StepJson, IsJsonWhateverTheNamesHold) {
  StepResult r = small_step();
  r.names[1] = "quote\" \x01 \xff";
  EXPECT_NO_THROW(parse_json(step_json(r), "step.json"));
}

constexpr std::string_view kTitles =
    "fwd compute,wg compute,ig compute,fwd exposed comm,wg exposed comm,ig exposed comm,fwd total "
    "comm,algbw,busbw,wg total comm,algbw,busbw,ig total comm,algbw,busbw";

/// 16 MiB in 100 us are 2^-6 GiB / 1e-4 s = 156.25; 64 MiB in 1 ms 62.5; 32 MiB in 200 us 156.25,
/// of which an all-gather of 2 moves half over the bus.
TEST(EndToEndCsv, AnalyticalGolden) {
  EXPECT_EQ(end_to_end_csv(small_step(), EndToEndLayout::kAnalytical, "run-"),
            "File name, Expose DP comm, Expose DP_EP comm, Expose TP comm, Expose_EP_comm, "
            "Expose_PP_comm, bubble time, total comp, total exposed comm, Total time\n"
            "run-, 1000 (12.50%), 0 (0.00%), 300 (3.75%), 0 (0.00%), 0 (0.00%), 200 (2.50%), "
            "6500 (81.25%), 1300 (16.25%), 8000\n"
            "layer_name,Analytical_test," +
                std::string(kTitles) +
                "\nembedding_layer,Analytical_test,500,0,0,100,0,0,100,156.25,156.25,0,-nan,0.00,0,"
                "-nan,0.00\n"
                "mlp,Analytical_test,1000,2000,0,200,1000,0,200,156.25,78.12,1000,62.50,62.50,0,"
                "-nan,0.00\n"
                "mlp,Analytical_test,1000,2000,0,0,0,0,0,-nan,0.00,0,-nan,0.00,0,-nan,0.00\n");
}

TEST(EndToEndCsv, Ns3LayoutTakesExposureFromTheTotalAndAddsSums) {
  const std::string csv = end_to_end_csv(small_step(), EndToEndLayout::kNs3, "any");
  EXPECT_THAT(csv, HasSubstr("\ntest1, 1000 (12.50%)"));
  EXPECT_THAT(csv, HasSubstr("1500 (18.75%), 8000\n")) << "8000 - 6500";
  EXPECT_THAT(csv, HasSubstr("busbw,workload finished at\n"));
  EXPECT_THAT(csv, HasSubstr("\nembedding_layer,test1,500.000000,0.000000,0.000000,100.000000,"
                             "0.000000,0.000000,100.000000,156.250000,156.250000,0.000000,-nan,"
                             "0.000000,0.000000,-nan,0.000000,8000.000000\n"));
  EXPECT_THAT(csv, HasSubstr("\nSUM,test1,2500.000000,4000.000000,0.000000,300.000000,1000.000000,"
                             "0.000000,300.000000,NONE,NONE,1000.000000,NONE,NONE,0.000000,NONE,"
                             "NONE\n"
                             "total exposed comm,1500.000000,total comp,6500.000000,total time,"
                             "8000.000000\n"));
}

TEST(EndToEndCsv, AStepWithoutLayersComputesWhatItsRankDid) {
  StepResult r;
  r.total = Time::us(100);
  r.compute = Time::us(60);
  EXPECT_THAT(end_to_end_csv(r, EndToEndLayout::kNs3, "any"),
              HasSubstr(" 60 (60.00%), 40 (40.00%), 100\n"));
}

TEST(EndToEndCsv, SizeWithoutTimeAndTimeOfNothing) {
  StepResult r;
  r.names = {"a,\"b\""};
  r.layers.resize(1);
  r.layers[0].forward = phase(0, 0, CommType::kAllReduce, 0, GroupKind::kTp, 2);
  r.layers[0].weight_grad = phase(0, 0, CommType::kAllGather, 8, GroupKind::kDp, 2);
  EXPECT_THAT(
      end_to_end_csv(r, EndToEndLayout::kAnalytical, ""),
      HasSubstr("\n\"a,\"\"b\"\"\",Analytical_test,0,0,0,0,0,0,0,-nan,-nan,0,inf,inf,0,-nan,"
                "0.00\n"));
}

TEST(EndToEndCsv, SimaisBubbleWithoutMicroBatchesIsNoNumber) {
  StepResult r = small_step();
  r.flavour = "simai";
  r.parallel.ga = 0;
  EXPECT_THAT(end_to_end_csv(r, EndToEndLayout::kAnalytical, "x"), HasSubstr("NaN or Inf (-nan%)"));
}

TEST(EndToEndCsv, SimaiHoldsNegativeTimesUnsigned) {
  StepResult r = small_step();
  r.flavour = "simai";
  r.layers[1].weight_grad.comm = Time() - Time::us(500'000);
  // (2^64 - 5e8) ns / 1000
  EXPECT_THAT(end_to_end_csv(r, EndToEndLayout::kAnalytical, "x"),
              HasSubstr(",18446744073209552,0.00,0.00,"));
}

TEST(EndToEndCsv, NameHasThePrefix) { EXPECT_EQ(end_to_end_name("run-"), "run-EndToEnd.csv"); }

}  // namespace
}  // namespace lockstep::report_test
