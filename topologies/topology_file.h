#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace lockstep {

/// The topology in a file, SimAI's text or our JSON (told apart by the first character), validated.
/// ERRORS: Error with file and place; also when a GPU cannot reach another.
Topology read_topology(const std::string& path);
/// The same from a text; `file` names it in messages.
Topology parse_topology(std::string_view text, const std::string& file);

/// What `--topology` takes: an existing file, or a template with its flags, such as
/// "rail-optimised:g=128,bw=400Gbps" (topologies/builder.h). `warnings` gets the builder's.
/// ERRORS: Error that names the nearest template when there is neither file nor template.
Topology topology_from(std::string_view file_or_template,
                       std::vector<std::string>* warnings = nullptr);

}  // namespace lockstep
