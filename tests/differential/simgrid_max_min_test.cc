// The solver against SimGrid (model CM02 without TCP's window, latencies 0, so that its network is
// the same max-min problem). A case is a random system, bounds in half of them, and a random size
// for each variable; all start at 0 and drain at max-min rates that are solved anew whenever one
// ends. The end of every variable must agree to 1e-9. All cases run in one SimGrid engine, as zones
// that share nothing.

#include <gtest/gtest.h>
#include <simgrid/s4u.hpp>

#include "tests/support/random_system.h"

namespace lockstep::simgrid_max_min_test {
namespace {

namespace s4u = simgrid::s4u;

constexpr int kCases = 1000;

struct Case {
  testing::System system;  // capacities in bytes per second
  std::vector<std::uint64_t> sizes;
  std::vector<double> ends;  // SimGrid's, in seconds
};

std::vector<Case> random_cases() {
  Rng rng(1, "SimGrid cases");
  std::vector<Case> cases(kCases);
  for (Case& c : cases) {
    c.system = testing::random_system(
        rng, {static_cast<int>(rng.between(1, 12)), static_cast<int>(rng.between(1, 16)),
              static_cast<int>(rng.between(1, 4)), false, rng.below(2) == 0});
    const bool equal_sizes = rng.below(4) == 0;
    for (double& capacity : c.system.capacities) {
      capacity *= 1e6;
    }
    for (testing::System::Row& row : c.system.variables) {
      row.bound *= 1e6;
    }
    for (std::size_t v = 0; v < c.system.variables.size(); ++v) {
      c.sizes.push_back(1'000'000'000 + (equal_sizes ? 0 : rng.below(9'000'000'000)));
    }
  }
  return cases;
}

/// One zone with a link for each constraint and a pair of hosts for each variable. A bound is a
/// link of the variable's own.
void build(s4u::NetZone& root, const Case& c, const std::string& name) {
  s4u::NetZone* zone = s4u::create_full_zone(name);
  zone->set_parent(&root);
  std::vector<s4u::LinkInRoute> links;
  for (std::size_t i = 0; i < c.system.capacities.size(); ++i) {
    s4u::Link* link =
        zone->create_link(name + " link " + std::to_string(i), c.system.capacities[i]);
    links.emplace_back(link->set_latency(0.0)->seal());
  }
  for (std::size_t v = 0; v < c.system.variables.size(); ++v) {
    const s4u::Host* from = zone->create_host(name + " from " + std::to_string(v), 1.0)->seal();
    const s4u::Host* to = zone->create_host(name + " to " + std::to_string(v), 1.0)->seal();
    std::vector<s4u::LinkInRoute> route;
    for (const MaxMin::Term& term : c.system.variables[v].terms) {
      route.push_back(links[term.constraint.index()]);
    }
    const double bound = c.system.variables[v].bound;
    if (bound != MaxMin::kUnbounded) {
      s4u::Link* own = zone->create_link(name + " bound " + std::to_string(v), bound);
      route.emplace_back(own->set_latency(0.0)->seal());
    }
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
}

void run_in_simgrid(std::vector<Case>& cases) {
  int argc = 1;
  char program[] = "simgrid_max_min_test";
  char* argv[] = {program, nullptr};
  s4u::Engine engine(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0",
        "network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0",
        "maxmin/concurrency-limit:-1", "maxmin/precision:1e-9", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(setting);
  }
  s4u::NetZone* root = s4u::create_full_zone("root");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    build(*root, cases[i], "case " + std::to_string(i));
  }
  s4u::Host* driver = root->create_host("driver", 1.0)->seal();
  root->seal();
  s4u::Actor::create("driver", driver, [&] {
    std::vector<std::vector<s4u::CommPtr>> comms(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string name = "case " + std::to_string(i);
      for (std::size_t v = 0; v < cases[i].sizes.size(); ++v) {
        comms[i].push_back(s4u::Comm::sendto_async(
            s4u::Host::by_name(name + " from " + std::to_string(v)),
            s4u::Host::by_name(name + " to " + std::to_string(v)), cases[i].sizes[v]));
      }
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (const s4u::CommPtr& comm : comms[i]) {
        comm->wait();
        cases[i].ends.push_back(comm->get_finish_time());
      }
    }
  });
  engine.run();
}

/// The same with MaxMin, in seconds.
std::vector<double> ends_of(const Case& c) {
  MaxMin solver = testing::to_max_min(c.system, 0x1p20);  // capacities up to 1e10
  std::vector<double> left(c.sizes.begin(), c.sizes.end()), ends(left.size());
  double now = 0;
  for (std::size_t open = left.size(); open > 0;) {
    solver.solve();
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t v = 0; v < left.size(); ++v) {
      if (left[v] > 0) {
        step = std::min(step, left[v] / solver.rate(VariableId(v)));
      }
    }
    now += step;
    for (std::size_t v = 0; v < left.size(); ++v) {
      if (left[v] > 0) {
        left[v] -= step * solver.rate(VariableId(v));
        if (left[v] < 1e-3) {  // bytes of 1e9
          left[v] = 0;
          ends[v] = now;
          solver.remove_variable(VariableId(v));
          --open;
        }
      }
    }
  }
  return ends;
}

TEST(MaxMinAgainstSimGrid, EndsAgreeOnRandomSystems) {
  std::vector<Case> cases = random_cases();
  run_in_simgrid(cases);
  double worst = 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> ends = ends_of(cases[i]);
    ASSERT_EQ(cases[i].ends.size(), ends.size());
    for (std::size_t v = 0; v < ends.size(); ++v) {
      ASSERT_NEAR(cases[i].ends[v], ends[v], 1e-9 * ends[v]) << "case " << i << ", variable " << v;
      worst = std::max(worst, std::abs(cases[i].ends[v] / ends[v] - 1));
      ++compared;
    }
  }
  RecordProperty("compared", std::to_string(compared));
  RecordProperty("worst_relative_difference", std::to_string(worst * 1e12) + "e-12");
}

}  // namespace
}  // namespace lockstep::simgrid_max_min_test
