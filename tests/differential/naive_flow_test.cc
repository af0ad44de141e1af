// The flow engine against a simulation written down from its definition: at every start and end all
// rates are solved anew by the naive solver; a flow ends at the first whole picosecond at which the
// integral of its rate reaches its wire bytes. No heap, no components, no lazy updates.

#include <cmath>

#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"
#include "tests/differential/naive_max_min.h"
#include "tests/support/flow_run.h"
#include "tests/support/random_flows.h"

namespace lockstep::naive_flow_test {
namespace {

struct NaiveFlow {
  testing::System::Row row;
  double left = 0;  // bits
  std::int64_t start = 0;
  std::int64_t end = -1;
};

void run_naively(const std::vector<double>& capacities, std::vector<NaiveFlow>& flows) {
  for (std::int64_t now = 0;;) {
    testing::System system{capacities, {}};
    std::vector<NaiveFlow*> active;
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (NaiveFlow& flow : flows) {
      if (flow.end < 0 && flow.start <= now) {
        active.push_back(&flow);
        system.variables.push_back(flow.row);
      } else if (flow.start > now) {
        next = std::min(next, flow.start);
      }
    }
    const std::vector<double> rates = testing::naive_max_min(system);
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double ps = active[i]->left / rates[i] * 1e12;
      next = std::min(next, now + static_cast<std::int64_t>(std::ceil(ps - 1e-6)));
    }
    if (next == std::numeric_limits<std::int64_t>::max()) {
      return;
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      active[i]->left -= rates[i] * static_cast<double>(next - now) * 1e-12;
      if (active[i]->left <= rates[i] * 1e-18) {
        active[i]->end = next;
      }
    }
    now = next;
  }
}

TEST(FlowEngineAgainstNaive, AgreesOnRandomFlows) {
  const Topology topology = testing::rail_optimised(4, 4, 2, 2);
  for (int round = 0; round < 60; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "naive flows");
    FlowOptions options = testing::bare<FlowOptions>();
    options.routes.spray = round % 2 == 1;
    const auto specs = testing::random_flows(rng, 30, 16, 2'000'000, Time::us(60));
    Router router(topology, options.routes);
    FlowEngine engine(topology, options);
    std::vector<double> capacities(2 * topology.links.size(), 400e9);
    std::vector<NaiveFlow> flows;
    for (const FlowSpec& spec : specs) {
      engine.start(spec);
      Route route;
      router.route({spec.source, spec.destination, static_cast<std::uint16_t>(10000 + spec.channel),
                    100, spec.channel},
                   route);
      NaiveFlow& flow = flows.emplace_back();
      for (const Hop& hop : route.hops) {
        flow.row.terms.push_back({ConstraintId(hop.port.value), hop.share});
      }
      flow.left = static_cast<double>(spec.bytes.count()) * 8;
      flow.start = spec.start.count_ps();
      flow.end = spec.bytes == Bytes() ? flow.start : -1;
    }
    run_naively(capacities, flows);
    const auto result = testing::outcomes(testing::run_to_end(engine));
    for (std::size_t i = 0; i < flows.size(); ++i) {
      // Each of the up to 60 earlier events may fall on the neighbouring picosecond.
      ASSERT_NEAR(static_cast<double>(result.at(i).sent.count_ps()),
                  static_cast<double>(flows[i].end), 60)
          << "round " << round << ", flow " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::naive_flow_test
