#include "topologies/simai_fabric.h"

namespace lockstep {
namespace {

constexpr auto kFlags = simai_flags({.gpu = "512", .psw = "8", .asw_per_psw = "8"});
constexpr std::int64_t kDualTorGpusPerLeaf = 128;

BuiltTopology build(const FlagValues& flags) {
  const SimaiFabric asked = simai_fabric(flags);
  SimaiFabric fabric = asked;
  fabric.rail_optimised = fabric.dual_plane = false;
  if (fabric.dual_tor && !flags.given("bandwidth")) {
    fabric.nic_rate = "200Gbps";
  }
  if (fabric.dual_tor && !flags.given("nics_per_aswitch")) {
    fabric.nics_per_asw = kDualTorGpusPerLeaf;
  }
  BuiltTopology built =
      build_simai_fabric(fabric, fabric.dual_tor ? "DCN+DualToR_" : "DCN+SingleToR_", "");
  note_ignored(built, asked, fabric, "DCN+");
  return built;
}

}  // namespace

extern const TopologyBuilder kDcnPlusTopologyBuilder;
const TopologyBuilder kDcnPlusTopologyBuilder{
    "DCN+", "dcn dcnplus dcn-plus",
    "whole servers under one leaf switch (two with --dt), full mesh to the spines", kFlags, build};

}  // namespace lockstep
