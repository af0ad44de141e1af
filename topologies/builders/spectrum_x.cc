#include "topologies/simai_fabric.h"

namespace lockstep {
namespace {

constexpr auto kFlags = simai_flags({.gpu = "4096"});

BuiltTopology build(const FlagValues& flags) {
  SimaiFabric fabric = simai_fabric(flags);
  fabric.rail_optimised = true;
  fabric.dual_tor = fabric.dual_plane = false;
  return build_simai_fabric(fabric, "Spectrum-X_", "");
}

}  // namespace

extern const TopologyBuilder kSpectrumXTopologyBuilder;
const TopologyBuilder kSpectrumXTopologyBuilder{
    "Spectrum-X", "spectrum spectrumx",
    "rail-optimised, one leaf switch for each rail of a segment, full mesh to the spines", kFlags,
    build};

}  // namespace lockstep
