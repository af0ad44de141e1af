#pragma once

#include <string>

#include "base/json.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// The counts of a packet simulation (docs/formats/simulate-json.md, `packets`).
Json packets_json(const PacketStatistics& packets);

/// What befell packets, as "3 of 12,000 lost, 40 marked, 2 pauses, longest queue 1.2 MB"; empty
/// where nothing did.
std::string packets_text(const PacketStatistics& packets);

}  // namespace lockstep
