#include "topologies/simai_fabric.h"

namespace lockstep {
namespace {

constexpr auto kFlags = simai_flags({.gpu = "4096"});

BuiltTopology build(const FlagValues& flags) {
  const SimaiFabric asked = simai_fabric(flags);
  SimaiFabric fabric = asked;
  fabric.rail_optimised = true;
  fabric.dual_tor = fabric.dual_plane = false;
  BuiltTopology built = build_simai_fabric(fabric, "Spectrum-X_", "");
  note_ignored(built, asked, fabric, "Spectrum-X");
  return built;
}

}  // namespace

extern const TopologyBuilder kSpectrumXTopologyBuilder;
const TopologyBuilder kSpectrumXTopologyBuilder{
    "Spectrum-X", "spectrum spectrumx",
    "rail-optimised, one leaf switch for each rail of a segment, full mesh to the spines", kFlags,
    build};

}  // namespace lockstep
