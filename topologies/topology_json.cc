#include "topologies/topology_json.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "topologies/topology_maker.h"

namespace lockstep {
namespace {

constexpr std::string_view kSchema = "lockstep-topology/1";
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::array<std::string_view, 3> kKinds{"gpu", "nvswitch", "switch"};

/// `count` nodes with ids in a row. Node i of the run is in server `server` + i / `per_server`.
struct NodeRun {
  Node first;
  std::int64_t count = 1;
  std::int64_t per_server = 0;  // 0: all in one server
};

/// The longest run that starts at node `begin`.
NodeRun run_from(const std::vector<Node>& nodes, std::size_t begin) {
  const auto like_first = [&](std::size_t i) {
    Node other = nodes[i];
    other.server = nodes[begin].server;
    return other == nodes[begin];
  };
  NodeRun run{nodes[begin]};
  std::size_t end = begin + 1;
  while (end < nodes.size() && nodes[end] == nodes[begin]) {
    ++end;
  }
  const std::size_t size = end - begin;
  if (run.first.server >= 0) {
    while (end < nodes.size() && like_first(end) &&
           nodes[end].server ==
               run.first.server + static_cast<std::int64_t>((end - begin) / size)) {
      ++end;
    }
  }
  run.count = static_cast<std::int64_t>(end - begin);
  run.per_server = end - begin > size ? static_cast<std::int64_t>(size) : 0;
  return run;
}

Json run_to_json(const NodeRun& run, const Topology& topology) {
  Json json;
  json["kind"] = kKinds[static_cast<std::size_t>(run.first.kind)];
  json["count"] = run.count;
  if (run.first.kind == NodeKind::kSwitch) {
    json["tier"] = run.first.tier;
    return json;
  }
  if (run.first.kind == NodeKind::kGpu) {
    json["gpu_type"] = topology.gpu_types[static_cast<std::size_t>(run.first.gpu_type)];
  }
  json["server"] = run.first.server;
  if (run.per_server != 0) {
    json["per_server"] = run.per_server;
  }
  return json;
}

NodeRun read_run(const JsonView& json, TopologyMaker& maker) {
  constexpr std::array<std::string_view, 6> kKeys{"kind",   "count",      "tier",
                                                  "server", "per_server", "gpu_type"};
  json.allow_keys(kKeys);
  NodeRun run;
  const std::string& kind = json["kind"].string();
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (found == kKinds.end()) {
    throw json["kind"].error("unknown kind of node").expected("gpu, nvswitch or switch");
  }
  run.first.kind = static_cast<NodeKind>(found - kKinds.begin());
  if (json.has("count")) {
    run.count = json["count"].integer(1, kMost);
  }
  const auto only_for = [&](std::string_view key, bool allowed) {
    if (json.has(key) && !allowed) {
      throw json[key].error(fmt::format("a {} has no such field", kind));
    }
    return json.has(key);
  };
  const bool is_switch = run.first.kind == NodeKind::kSwitch;
  if (only_for("tier", is_switch)) {
    run.first.tier = static_cast<std::uint8_t>(json["tier"].integer(0, 255));
  }
  if (!is_switch || json.has("server")) {
    only_for("server", !is_switch);
    run.first.server = static_cast<std::int32_t>(json["server"].integer(0, kMost));
  }
  if (only_for("per_server", !is_switch)) {
    run.per_server = json["per_server"].integer(1, kMost);
    if (run.first.server + (run.count - 1) / run.per_server > kMost) {
      throw json["per_server"].error("the run's last server number is too large");
    }
  }
  if (only_for("gpu_type", run.first.kind == NodeKind::kGpu)) {
    run.first.gpu_type = maker.gpu_type(json["gpu_type"].string());
  }
  return run;
}

void read_link_classes(const JsonView& json, TopologyMaker& maker) {
  constexpr std::array<std::string_view, 3> kKeys{"rate", "delay", "error_rate"};
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonView item = json[i];
    item.allow_keys(kKeys);
    const std::string error = item.has("error_rate") ? item["error_rate"].string() : "0";
    try {
      if (maker.link_class(item["rate"].string(), item["delay"].string(), error) !=
          static_cast<std::int32_t>(i)) {
        throw item.error("this link class stands twice");
      }
    } catch (Error& problem) {
      if (problem.file().empty()) {
        throw std::move(problem).at(json.file()).field(fmt::format("link_classes[{}]", i));
      }
      throw;
    }
  }
}

/// Tier 0 means "not given" (or that no GPU reaches the switch, which gives 0 again).
void fill_missing_tiers(Topology& topology) {
  const std::vector<Node> given = topology.nodes;
  assign_tiers(topology);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].kind == NodeKind::kSwitch && given[i].tier != 0) {
      topology.nodes[i].tier = given[i].tier;
    }
  }
}

}  // namespace

Topology parse_topology_json(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  const JsonView json(document, file);
  if (!json.has("schema") || json["schema"].string() != kSchema) {
    throw Error("this JSON is no topology")
        .at(file)
        .field("schema")
        .expected(fmt::format("\"{}\"", kSchema));
  }
  constexpr std::array<std::string_view, 7> kKeys{
      "schema", "name", "gpus_per_server", "gpu_types", "link_classes", "nodes", "links"};
  json.allow_keys(kKeys);
  TopologyMaker maker(json["name"].string());
  const JsonView types = json["gpu_types"];
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (static_cast<std::size_t>(maker.gpu_type(types[i].string())) != i) {
      throw types[i].error("this GPU type stands twice");
    }
    if (i == static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max())) {
      throw types.error("there are more than 32767 GPU types");
    }
  }
  read_link_classes(json["link_classes"], maker);

  const JsonView runs = json["nodes"];
  const JsonView links = json["links"];
  // A node without a link is an error anyway, so the links bound what the runs may claim.
  const auto most_nodes = std::max<std::int64_t>(1, 2 * static_cast<std::int64_t>(links.size()));
  Topology topology;
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const NodeRun run = read_run(runs[i], maker);
    if (static_cast<std::int64_t>(nodes.size()) + run.count > most_nodes) {
      throw runs[i].error(fmt::format("more than {} nodes, but {} links reach no more of them",
                                      most_nodes, links.size()));
    }
    for (std::int64_t k = 0; k < run.count; ++k) {
      nodes.push_back(run.first);
      if (run.per_server != 0) {
        nodes.back().server += static_cast<std::int32_t>(k / run.per_server);
      }
    }
  }
  topology = maker.take();
  if (topology.gpu_types.size() > types.size()) {
    throw json["nodes"]
        .error(fmt::format("the GPU type \"{}\" is not listed", topology.gpu_types.back()))
        .expected("one of those in gpu_types");
  }
  topology.nodes = std::move(nodes);
  topology.gpus_per_server = static_cast<std::int32_t>(json["gpus_per_server"].integer(1, kMost));
  topology.links.reserve(links.size());
  const auto last_node = static_cast<std::int64_t>(topology.nodes.size()) - 1;
  const auto last_class = static_cast<std::int64_t>(topology.link_classes.size()) - 1;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const JsonView row = links[i];
    if (!row.json().is_array() || row.size() != 3) {
      throw row.error("expected [a, b, class]");
    }
    const NodeId a(static_cast<std::int32_t>(row[0].integer(0, last_node)));
    const NodeId b(static_cast<std::int32_t>(row[1].integer(0, last_node)));
    if (a == b) {
      throw row.error(fmt::format("the link leads from node {} to itself", a.value));
    }
    topology.links.push_back({a, b, static_cast<std::int32_t>(row[2].integer(0, last_class))});
  }
  fill_missing_tiers(topology);
  return topology;
}

std::string to_json_text(const Topology& topology) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto quoted = [](const std::string& s) { return to_line(Json(s)); };
  const auto row = [&](bool first, const std::string& item) {
    text += first ? "\n    " : ",\n    ";
    text += item;
  };
  fmt::format_to(out, "{{\n  \"schema\": \"{}\",\n  \"name\": {},\n  \"gpus_per_server\": {},\n",
                 kSchema, quoted(topology.name), topology.gpus_per_server);
  text += "  \"gpu_types\": [";
  for (std::size_t i = 0; i < topology.gpu_types.size(); ++i) {
    text += (i == 0 ? "" : ", ") + quoted(topology.gpu_types[i]);
  }
  text += "],\n  \"link_classes\": [";
  for (const LinkClass& c : topology.link_classes) {
    row(&c == topology.link_classes.data(),
        fmt::format("{{\"rate\": {}, \"delay\": {}, \"error_rate\": {}}}", quoted(c.rate_text),
                    quoted(c.delay_text), quoted(c.error_text)));
  }
  text += "\n  ],\n  \"nodes\": [";
  for (std::size_t i = 0; i < topology.nodes.size();) {
    const NodeRun run = run_from(topology.nodes, i);
    row(i == 0, to_line(run_to_json(run, topology)));
    i += static_cast<std::size_t>(run.count);
  }
  text += "\n  ],\n  \"links\": [";
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    text += i == 0 ? "\n    " : ",\n    ";
    fmt::format_to(out, "[{}, {}, {}]", link.a.value, link.b.value, link.link_class);
  }
  text += "\n  ]\n}\n";
  return text;
}

}  // namespace lockstep
