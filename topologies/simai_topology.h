#pragma once

#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace lockstep {

/// Reads SimAI's topology text (docs/formats/topology.md):
///
///     node_num gpus_per_server nvswitch_num switch_num link_num gpu_type
///     the ids of all NVSwitches, then of all switches
///     src dst rate delay error_rate                        (link_num such lines)
///
/// GPUs are the nodes whose ids do not stand in line 2; GPU i is in server i / gpus_per_server, and
/// an NVSwitch in the server of its GPUs. Any blanks and CRLF are taken, blank lines are skipped.
/// Rates and delays keep their spelling, so that to_simai_text gives the file back. `file` names
/// the text in messages.
///
/// Time and memory are linear in the text, whatever its header claims. The caller validates.
/// ERRORS: Error with file, line, column and field.
Topology parse_simai_topology(std::string_view text, const std::string& file);

/// SimAI's text, as its own generator writes it (line 2 ends with a blank).
/// ERRORS: Error when the text cannot hold the topology: two GPU types, a blank in the type's name,
/// NVLink domains that are not gpus_per_server GPUs in a row.
std::string to_simai_text(const Topology& topology);

}  // namespace lockstep
