// Sprayed routes are found once for each pair of switches; every pair of GPUs has its own ports.
#include "simulator/network/flow/path_finder.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "topologies/topology_file.h"

namespace lockstep::path_finder_test {
namespace {

void expect_same(const Path& a, const Path& b) {
  ASSERT_EQ(a.ports.size(), b.ports.size());
  for (std::size_t i = 0; i < a.ports.size(); ++i) {
    EXPECT_EQ(a.ports[i].constraint, b.ports[i].constraint);
    EXPECT_EQ(a.ports[i].coefficient, b.ports[i].coefficient);
  }
  EXPECT_EQ(a.propagation, b.propagation);
  EXPECT_EQ(a.pipeline, b.pipeline);
  EXPECT_EQ(a.ack, b.ack);
}

// One finder for all pairs, and one for each: the first to ask is never given what others found.
TEST(PathFinder, SprayedRoutesOfOnePairOfSwitchesDifferInTheirEndsAlone) {
  for (const char* fabric : {"Spectrum-X:g=64", "DCN+:g=64,asw=2", "AlibabaHPN:g=64"}) {
    SCOPED_TRACE(fabric);
    const Topology topology = topology_from(fabric, nullptr);
    const std::vector<NodeId> gpus = topology.gpus();
    for (const bool pxn : {false, true}) {
      FlowOptions options;
      options.routes.spray = true;
      options.routes.pxn = pxn;
      PathFinder all(topology, options);
      for (std::size_t a = 0; a < gpus.size(); a += 5) {
        for (std::size_t b = 1; b < gpus.size(); b += 3) {
          if (a != b) {
            PathFinder one(topology, options);
            expect_same(all.next(gpus[a], gpus[b], 0), one.next(gpus[a], gpus[b], 0));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::path_finder_test
