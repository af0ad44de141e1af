#include "simulator/network/flow/pfc_coupling.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "topologies/topology_file.h"

namespace lockstep::pfc_coupling_test {
namespace {

/// Bits of GPU 1's that the switch keeps of a long queue, where GPU 0 has 100 Gbps.
double kept(const char* rate, bool by_rate) {
  const Topology topology = parse_topology("4 1 0 1 3 H100\n3\n0 3 100Gbps 0ms 0\n1 3 " +
                                               std::string(rate) + " 0ms 0\n2 3 50Gbps 0ms 0\n",
                                           "topology");
  TransportTerms transport;
  transport.pfc_alpha_by_rate = by_rate;
  transport.headroom_packets = 0;
  transport.port_reserve = Bytes();
  PfcCoupling coupling(topology, transport, Bytes());  // packets of no size: nothing is beside
  constexpr std::array<std::int32_t, 2> kWay = {2, 5};
  PfcCoupling::Flow flow;
  flow.way = kWay;
  flow.rate = flow.window = 50e9;
  flow.waiting = 10e9;
  flow.hop = 1;
  std::vector<PfcCoupling::Flow> flows = {flow};
  coupling.apply(flows);
  return flows[0].here;
}

// One port is paused with T = alpha (buffer - T).
TEST(PfcCoupling, FastPortsHaveALargerShare) {
  const double buffer = 8.0 * (32 << 20);
  const auto threshold = [&](double alpha) { return alpha * buffer / (1 + alpha); };
  EXPECT_DOUBLE_EQ(kept("400Gbps", false), threshold(0.125));
  EXPECT_DOUBLE_EQ(kept("100Gbps", true), threshold(0.125));
  EXPECT_DOUBLE_EQ(kept("150Gbps", true), threshold(0.25));
  EXPECT_DOUBLE_EQ(kept("400Gbps", true), threshold(0.5));
  EXPECT_DOUBLE_EQ(kept("3200Gbps", true), threshold(1));  // no more than all
}

}  // namespace
}  // namespace lockstep::pfc_coupling_test
