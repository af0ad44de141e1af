#include "topologies/simai_fabric.h"

namespace lockstep {
namespace {

constexpr auto kFlags = simai_flags({.gpu = "15360",
                                     .bandwidth = "200Gbps",
                                     .asw = "240",
                                     .nics_per_asw = "128",
                                     .psw = "120",
                                     .asw_per_psw = "240"});
constexpr std::int64_t kDualPlaneAswsPerPsw = 120;

BuiltTopology build(const FlagValues& flags) {
  SimaiFabric fabric = simai_fabric(flags);
  fabric.rail_optimised = fabric.dual_tor = true;
  if (fabric.dual_plane && !flags.given("asw_per_psw")) {
    fabric.asws_per_psw = kDualPlaneAswsPerPsw;
  }
  return build_simai_fabric(fabric, "AlibabaHPN_",
                            fabric.dual_plane ? "DualToR_DualPlane_" : "DualToR_SinglePlane_");
}

}  // namespace

extern const TopologyBuilder kAlibabaHpnTopologyBuilder;
const TopologyBuilder kAlibabaHpnTopologyBuilder{
    "AlibabaHPN", "hpn", "rail-optimised with dual ToR; single plane, or dual plane with --dp",
    kFlags, build};

}  // namespace lockstep
