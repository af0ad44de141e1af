#include "topologies/topology_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_record.h"
#include "base/gunzip.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "topologies/builder.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_json.h"

namespace lockstep {

Topology parse_topology(std::string_view text, const std::string& file) {
  const std::string_view start = trim(text.substr(0, 4096));
  Topology topology = !start.empty() && start[0] == '{' ? parse_topology_json(text, file)
                                                        : parse_simai_topology(text, file);
  try {
    validate(topology);
  } catch (Error& error) {
    error.locate(file);
    throw;
  }
  return topology;
}

Topology read_topology(const std::string& path) {
  const UnpackedText text(path);
  Topology topology = parse_topology(text.view(), path);
  if (topology.name == path) {
    topology.name = std::filesystem::path(path).filename().string();
  }
  return topology;
}

Topology topology_from(std::string_view file_or_template, std::vector<std::string>* warnings) {
  const std::string path(file_or_template);
  if (path == "-" || (!path.empty() && path_exists(path))) {
    return read_topology(path);
  }
  const std::size_t colon = file_or_template.find(':');
  const std::string_view name = file_or_template.substr(0, colon);
  const TopologyBuilder* builder = find_topology_builder(name);
  if (builder == nullptr) {
    const std::string_view near = closest_topology_builder(name);
    throw Error(fmt::format("'{}' is neither a file nor a topology template", printable(path)))
        .field("topology")
        .expected("a topology file, or one of the templates " + topology_builder_names())
        .hint(!near.empty()                           ? fmt::format("did you mean {}?", near)
              : path.find_first_of("./") != path.npos ? hint_of_missing(path)
                                                      : "");
  }
  const std::string_view arguments =
      colon == std::string_view::npos ? "" : file_or_template.substr(colon + 1);
  BuiltTopology built = build_topology(*builder, FlagValues::from_compact(*builder, arguments));
  if (warnings != nullptr) {
    warnings->insert(warnings->end(), built.warnings.begin(), built.warnings.end());
    warnings->insert(warnings->end(), built.ignored.begin(), built.ignored.end());
  }
  return std::move(built.topology);
}

}  // namespace lockstep
