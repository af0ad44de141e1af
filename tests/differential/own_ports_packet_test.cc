// GPUs with several ports of their own (NICs, NVLinks to several NVSwitches, parallel direct
// links): the flow engine, whose shares are even at each hop, against packets.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/packet_engine.h"
#include "tests/support/flow_run.h"
#include "tests/support/run.h"

namespace lockstep::own_ports_packet_test {
namespace {

using testing::FabricMaker;

struct Case {
  FabricMaker maker;
  std::vector<FlowSpec> flows;
  RouteOptions routes;
  std::string name;
};

std::int32_t draw(Rng& rng, std::int32_t from, std::int32_t to) {
  return static_cast<std::int32_t>(rng.between(from, to));
}

void link(FabricMaker& maker, NodeId a, NodeId b, std::int64_t gbps) {
  std::vector<LinkClass>& kinds = maker.topology.link_classes;
  const LinkId id = maker.link(a, b);
  auto kind = std::ranges::find(kinds, Bandwidth::gbps(gbps), &LinkClass::rate);
  if (kind == kinds.end()) {
    kind = kinds.insert(
        kind, {Bandwidth::gbps(gbps), Time::ns(500), 0, fmt::format("{}Gbps", gbps), "500ns", "0"});
  }
  maker.topology.links[id.index()].link_class = static_cast<std::int32_t>(kind - kinds.begin());
}

/// Servers on one NVSwitch, several or parallel direct links; their GPUs with one to three NICs,
/// the first of each on plane 0, where servers differ; planes of leaves for all or for each rail,
/// with spines of their own or without (then leaves of a plane are linked in full).
void draw_fabric(Rng& rng, Case& drawn) {
  FabricMaker& maker = drawn.maker;
  const std::int32_t servers = draw(rng, 2, 4), gpus = draw(rng, 1, 4), planes = draw(rng, 1, 3);
  const std::int32_t nvswitches = draw(rng, 0, 4), parallel = draw(rng, 1, 2);
  const std::int32_t rails = rng.between(0, 1) == 0 ? 1 : gpus, spines = draw(rng, 1, 4);
  const std::int64_t nic = std::int64_t{100} << rng.between(0, 2);
  const std::int64_t uplink = nic << rng.between(0, 1);
  const std::int64_t nvlink = nic * rng.between(1, 4);
  for (std::int32_t i = 0; i < servers * gpus; ++i) {
    maker.gpu(i / gpus);
  }
  for (std::int32_t s = 0; s < servers; ++s) {
    for (std::int32_t n = 0; n < nvswitches; ++n) {
      const NodeId nvswitch = maker.nvswitch(s);
      for (std::int32_t g = 0; g < gpus; ++g) {
        link(maker, NodeId(s * gpus + g), nvswitch, nvlink);
      }
    }
    for (std::int32_t g = 0; nvswitches == 0 && g < gpus; ++g) {
      for (std::int32_t other = g + 1; other < gpus; ++other) {
        for (std::int32_t n = 0; n < parallel; ++n) {
          link(maker, NodeId(s * gpus + g), NodeId(s * gpus + other), nvlink);
        }
      }
    }
  }
  std::vector<std::vector<NodeId>> leaves(static_cast<std::size_t>(planes));
  for (std::vector<NodeId>& plane : leaves) {
    for (std::int32_t r = 0; r < 2 * rails; ++r) {
      plane.push_back(maker.leaf());
    }
    for (std::int32_t i = 0; i < spines; ++i) {
      const NodeId spine = maker.spine();
      for (const NodeId leaf : plane) {
        link(maker, leaf, spine, uplink);
      }
    }
  }
  for (std::int32_t s = 0; s < servers; ++s) {
    const std::int32_t nics = draw(rng, 1, planes);
    for (std::int32_t g = 0; g < gpus; ++g) {
      for (std::int32_t n = 0; n < nics; ++n) {
        const auto leaf = static_cast<std::size_t>(g % rails + (s < servers / 2 ? 0 : rails));
        link(maker, NodeId(s * gpus + g), leaves[static_cast<std::size_t>(n)][leaf], nic);
      }
    }
  }
  drawn.name = fmt::format("{} servers of {}, {} NVSwitches, {} planes, {} rails, {} spines",
                           servers, gpus, nvswitches, planes, rails, spines);
}

Case draw_case(Rng& rng) {
  Case drawn;
  draw_fabric(rng, drawn);
  drawn.routes.spray = rng.between(0, 2) > 0;
  drawn.routes.rail_affinity = rng.between(0, 3) == 0;
  drawn.routes.pxn = rng.between(0, 2) == 0;
  const auto gpus = static_cast<std::int32_t>(drawn.maker.topology.gpus().size());
  const Bytes bytes(std::llround(std::exp2(20 + 2 * rng.uniform())));
  const auto add = [&](std::int32_t from, std::int32_t to) {
    if (from != to) {
      const auto tag = static_cast<std::uint64_t>(drawn.flows.size());
      drawn.flows.push_back({NodeId(from), NodeId(to), bytes, Time(), draw(rng, 0, 7), tag});
    }
  };
  const std::int32_t shift = draw(rng, 1, gpus - 1);
  const std::int64_t pattern = rng.between(0, 2);
  for (std::int32_t from = 0; from < gpus; ++from) {
    const std::int32_t to = pattern == 0 ? (from + shift) % gpus : draw(rng, 0, gpus - 1);
    if (pattern < 2) {
      add(from, to);
    } else if (from < 2) {
      add(from * (gpus - 1), to);  // one or two alone
    }
  }
  if (drawn.flows.empty()) {
    add(0, shift);
  }
  drawn.name +=
      fmt::format("; {} transfers of {} B{}{}{}", drawn.flows.size(), bytes.count(),
                  drawn.routes.spray ? ", sprayed" : "",
                  drawn.routes.rail_affinity ? ", affinity" : "", drawn.routes.pxn ? ", PXN" : "");
  return drawn;
}

Time last_delivery(NetworkEngine& engine, const std::vector<FlowSpec>& flows) {
  for (const FlowSpec& flow : flows) {
    engine.start(flow);
  }
  Time last;
  for (const NetworkEvent& event : testing::run_to_end(engine)) {
    last = std::max(last, event.when);
  }
  return last;
}

TEST(OwnPorts, PacketsSpreadOverThemAsTheFluidDoes) {
  const char* more = std::getenv("LOCKSTEP_ACCURACY_CASES");
  const int cases = more != nullptr ? std::atoi(more) : 60;
  Rng rng(1, "own ports");
  std::vector<double> errors;
  for (int i = 0; i < cases; ++i) {
    const Case drawn = draw_case(rng);
    FlowOptions fluid;
    fluid.routes = drawn.routes;
    PacketOptions packets;
    packets.program = std::string(LOCKSTEP_BINARY) + "-packet";
    packets.congestion = "none";
    packets.routes = drawn.routes;
    FlowEngine flow(drawn.maker.topology, fluid);
    PacketEngine packet(drawn.maker.topology, packets);
    const double error = last_delivery(flow, drawn.flows) / last_delivery(packet, drawn.flows) - 1;
    errors.push_back(std::abs(error));
    if (std::getenv("LOCKSTEP_ACCURACY_ROWS") != nullptr) {
      fmt::print("{:+7.2f} %  {}\n", 100 * error, drawn.name);
    }
  }
  std::ranges::sort(errors);
  const auto at = [&](double part) {
    return 100 * errors[static_cast<std::size_t>(part * static_cast<double>(errors.size() - 1))];
  };
  fmt::print("{} cases: median {:.2f} %, 95 % {:.2f} %, worst {:.2f} %\n", errors.size(), at(0.5),
             at(0.95), at(1));
  EXPECT_LT(at(0.5), 0.5);
  EXPECT_LT(at(0.95), 2);
  EXPECT_LT(at(1), 10);
}

}  // namespace
}  // namespace lockstep::own_ports_packet_test
