// The analytic and the flow engine on the same collective. Where the latency of the steps is small
// against the transfer and nothing contends, the bus-bandwidth formula and max-min fair flows must
// tell the same time: large messages, no efficiency table, one ring a rank's NIC or NVLink.
#include <cmath>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "simulator/collectives/choose.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/step_simulation.h"
#include "topologies/topology_file.h"

namespace lockstep::analytic_flow_test {
namespace {

struct Case {
  const char* what;
  CommType op;
  GroupKind group;
  std::int64_t gpus, tp;
  double tolerance;  // relative; the flow engine adds 1.5 % of headers and the steps' latency
};

class AnalyticAgainstFlow : public ::testing::TestWithParam<Case> {};

TEST_P(AnalyticAgainstFlow, LargeMessages) {
  const Case& param = GetParam();
  const Bytes bytes(std::int64_t{4} << 30);
  const Topology topology = topology_from("Spectrum-X:g=" + std::to_string(param.gpus));

  AnalyticOptions analytic;
  analytic.nvlink = parse_bandwidth("2880Gbps");
  analytic.nic = parse_bandwidth("400Gbps");
  analytic.efficiency = {};
  const std::int64_t ranks = param.group == GroupKind::kTp ? param.tp : param.gpus / param.tp;
  const Time formula = collective_time({param.op, param.group, ranks, bytes},
                                       {.gpus = param.gpus, .tp = param.tp}, analytic);

  LayerTable table;
  table.names = {"layer"};
  Layer layer;
  layer.forward = {Time(), bytes, param.op, param.group};
  table.layers = {layer};
  Workload workload;
  workload.jobs.push_back({"job", {.gpus = param.gpus, .tp = param.tp}, table});
  ScheduleCache schedules;
  const StepResult result = simulate_step(
      workload, topology, [&] { return std::make_unique<FlowEngine>(topology); },
      [&](CommType op, Bytes size, const GroupShape& shape) {
        return schedules.get({.op = op, .bytes = size}, shape);
      },
      {});
  EXPECT_NEAR(result.total.seconds() / formula.seconds(), 1, param.tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Fabric, AnalyticAgainstFlow,
    ::testing::Values(
        Case{"TP all-reduce in a server", CommType::kAllReduce, GroupKind::kTp, 8, 8, 0.03},
        Case{"TP all-gather in a server", CommType::kAllGather, GroupKind::kTp, 8, 8, 0.03},
        Case{"TP reduce-scatter, two servers", CommType::kReduceScatter, GroupKind::kTp, 16, 16,
             0.03},
        Case{"TP all-reduce, eight servers", CommType::kAllReduce, GroupKind::kTp, 64, 64, 0.05},
        Case{"DP all-gather, one rank a server", CommType::kAllGather, GroupKind::kDp, 128, 8,
             0.03},
        Case{"DP all-reduce, one rank a server", CommType::kAllReduce, GroupKind::kDp, 64, 8, 0.03},
        Case{"DP all-reduce, two ranks a server", CommType::kAllReduce, GroupKind::kDp, 64, 4,
             0.03}),
    [](const auto& param) {
      std::string name(param.param.what);
      for (char& c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return name;
    });

}  // namespace
}  // namespace lockstep::analytic_flow_test
