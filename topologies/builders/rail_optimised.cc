#include "topologies/simai_fabric.h"

namespace lockstep {
namespace {

constexpr auto kFlags = simai_flags({.gpu = "128"});

BuiltTopology build(const FlagValues& flags) {
  SimaiFabric fabric = simai_fabric(flags);
  fabric.rail_optimised = true;
  return build_simai_fabric(fabric);
}

}  // namespace

extern const TopologyBuilder kRailOptimisedTopologyBuilder;
const TopologyBuilder kRailOptimisedTopologyBuilder{
    "rail-optimised", "rail-optimized rail", "the template plain with --ro, 128 GPUs by default",
    kFlags, build};

}  // namespace lockstep
