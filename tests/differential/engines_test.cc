// Random collectives on random fabrics (accuracy_case.h) in several ways that must agree: folded by
// symmetry and in full, the flow engine between bounds that hold for any engine, and the analytic
// model where its assumptions hold. LOCKSTEP_DIFFERENTIAL_CASES=2000 draws more of them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/network/flow/flow_engine.h"
#include "tests/differential/accuracy_case.h"
#include "topologies/topology_file.h"

namespace lockstep::testing {
namespace {

std::int64_t cases(std::int64_t otherwise) {
  const char* text = std::getenv("LOCKSTEP_DIFFERENTIAL_CASES");
  return text == nullptr ? otherwise : to_int(text).value_or(otherwise);
}

double rate_of(const Topology& topology, const Link& link) {
  const LinkClass& kind = topology.link_classes[static_cast<std::size_t>(link.link_class)];
  return static_cast<double>(kind.rate.bits_per_second());
}

double bits_per_second_out_of(const Topology& topology, NodeId node) {
  double sum = 0;
  for (const Link& link : topology.links) {
    sum += link.a == node || link.b == node ? rate_of(topology, link) : 0;
  }
  return sum;
}

/// No engine can be faster: the busiest rank's bytes, out or in, over all of its links.
double least_seconds(const AccuracyCase& drawn) {
  const Schedule& schedule = *drawn.collective.schedule;
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  std::vector<double> out(ranks), in(ranks);
  for (const Slot& slot : schedule.slots) {
    for (std::int32_t k = 0; k < slot.count; ++k) {
      const double bits = 8 * static_cast<double>(schedule.bytes(slot, k).count());
      out[static_cast<std::size_t>(slot.source)] += bits;
      in[static_cast<std::size_t>(slot.destination)] += bits;
    }
  }
  double least = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    least =
        std::max(least, std::max(out[rank], in[rank]) /
                            bits_per_second_out_of(*drawn.topology, drawn.collective.nodes[rank]));
  }
  return least;
}

/// An engine that is never idle while there is work is no slower: one transfer after the other,
/// each with 2 % of headers over the slowest link and 10 us of latencies.
double most_seconds(const AccuracyCase& drawn) {
  double slowest = INFINITY;
  for (const Link& link : drawn.topology->links) {
    slowest = std::min(slowest, rate_of(*drawn.topology, link));
  }
  const Schedule& schedule = *drawn.collective.schedule;
  double sum = 0;
  for (const Slot& slot : schedule.slots) {
    for (std::int32_t k = 0; k < slot.count; ++k) {
      sum += 8 * (1.02 * static_cast<double>(schedule.bytes(slot, k).count()) + 100) / slowest;
      sum += drawn.collective.send_latency.seconds() + 10e-6;
    }
  }
  return sum;
}

TEST(Engines, FoldedOrInFullAndBetweenBounds) {
  Rng rng(11, "engines");
  for (std::int64_t i = 0; i < cases(60); ++i) {
    const AccuracyCase drawn = draw_case(rng);
    SCOPED_TRACE(drawn.name);
    FlowOptions flow;
    flow.routes = drawn.routes;
    FlowEngine engine(*drawn.topology, flow);
    const Time full = run_lone_collective(drawn.collective, *drawn.topology, engine).end;
    const Time folded = run_on_flow_engine(drawn.collective, *drawn.topology, flow, {}).end;
    EXPECT_EQ(folded, full);
    EXPECT_GE(full.seconds(), least_seconds(drawn));
    EXPECT_LE(full.seconds(), most_seconds(drawn));
  }
}

// A ring through one switch, one GPU a server, no headers: the formula of the bus bandwidth and
// nothing else, but for the latency of the steps and the rounding of chunks.
TEST(Engines, AnalyticAndFlowOnOneSwitch) {
  Rng rng(12, "analytic against flow");
  for (std::int64_t i = 0; i < cases(200); ++i) {
    constexpr std::pair<CommType, double> kOps[] = {
        {CommType::kAllReduce, 2}, {CommType::kAllGather, 1}, {CommType::kReduceScatter, 1}};
    const auto [op, rounds] = kOps[rng.below(3)];
    const auto gpus = static_cast<std::int64_t>(2 + rng.below(31));
    const Bytes bytes(std::llround(std::exp2(16 + 14 * rng.uniform())));
    const Topology topology =
        topology_from("single-switch:g=" + std::to_string(gpus) + ",gps=1,nsps=0");
    SCOPED_TRACE(std::string(name_of(op)) + " of " + std::to_string(bytes.count()) + " B on " +
                 std::to_string(gpus));
    LoneCollective collective;
    collective.nodes = topology.gpus();
    collective.bytes = bytes;
    collective.send_latency = Time::us(1);
    CollectiveRequest request;
    request.op = op;
    request.bytes = bytes;
    request.channels = 1;
    collective.schedule = std::make_shared<const Schedule>(build_schedule(
        algorithm_named("ring", op), request, shape_of_nodes(topology, collective.nodes)));
    FlowOptions flow;
    flow.header = Bytes(0);
    flow.payload = Bytes(1);
    const double simulated = run_on_flow_engine(collective, topology, flow, {}).end.seconds();

    const double steps = rounds * static_cast<double>(gpus - 1);
    const double rate = rate_of(topology, topology.links.front());
    const double wire =
        steps / static_cast<double>(gpus) * static_cast<double>(bytes.count()) * 8 / rate;
    AnalyticOptions analytic;
    analytic.nic = topology.link_classes.front().rate;
    analytic.efficiency = {};
    analytic.gpus_per_server = analytic.nics_per_server = 1;
    const auto formula = [&, type = op](Bytes of) {
      return collective_time({type, GroupKind::kDp, gpus, of}, {.gpus = gpus}, analytic).seconds();
    };
    // The latency of a smallest message stands under every size.
    const double expected = std::max(wire, formula(Bytes(1)));
    EXPECT_NEAR(formula(bytes), expected, 1e-9 + 1e-6 * expected);
    EXPECT_GE(simulated, wire * (1 - 1e-9));
    const double rounding = steps * 8 / rate;  // chunks are whole bytes
    EXPECT_LE(simulated, wire + rounding + steps * 5e-6);
  }
}

}  // namespace
}  // namespace lockstep::testing
