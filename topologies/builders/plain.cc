#include "topologies/simai_fabric.h"

namespace lockstep {

namespace {

constexpr auto kFlags = simai_flags({});

BuiltTopology build(const FlagValues& flags) { return build_simai_fabric(simai_fabric(flags)); }

}  // namespace

extern const TopologyBuilder kPlainTopologyBuilder;
const TopologyBuilder kPlainTopologyBuilder{
    "plain", "none",
    "leaf and spine without a template: --ro for rails, --dt for two leaf switches a GPU", kFlags,
    build};

}  // namespace lockstep
