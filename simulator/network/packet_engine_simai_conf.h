#pragma once

#include <string>
#include <string_view>

#include "base/warnings.h"
#include "simulator/network/packet_engine_options.h"

namespace lockstep {

/// Applies a SimAI.conf ("KEY value [value …]" lines in any order; docs/formats/simai-conf.md) to
/// the options. Keys that SimAI accepts without using them do nothing. `warnings` gets keys that
/// are unknown, and settings that this engine does not model. `file` names it in messages.
/// ERRORS: Error with file and line for a missing, malformed or impossible value.
void apply_simai_conf(std::string_view text, const std::string& file, PacketOptions& options,
                      Warnings& warnings);

}  // namespace lockstep
