#include "planner/metis/cluster.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep::metis {
namespace {

double positive(const JsonView& view) {
  const double value = view.number();
  if (!(value > 0) || value > 1e15) {
    throw view.error("expected a number above 0");
  }
  return value;
}

void describe(Node& node, const JsonView& cluster) {
  if (!cluster.has(node.address)) {
    throw cluster.error(fmt::format("no entry for the host {}", printable(node.address)));
  }
  const JsonView entry = cluster[node.address];
  node.type = entry["instance_type"].string();
  node.intra = positive(entry["intra_bandwidth"]);
  node.inter = positive(entry["inter_bandwidth"]);
  node.memory = positive(entry["memory"]);
  for (const auto& [address, other] : cluster.json().items()) {
    if (other.is_object() && other.value("instance_type", Json()) == node.type) {
      node.type_memory = positive(cluster[address]["memory"]);
      break;
    }
  }
}

}  // namespace

std::vector<Node> parse_cluster(std::string_view hosts, const std::string& hostfile,
                                std::string_view cluster, const std::string& clusterfile) {
  const Json json = parse_json(cluster, clusterfile);
  const JsonView document(json, clusterfile);
  std::vector<Node> nodes;
  std::size_t line = 0;
  for (std::string_view text : split(hosts, '\n')) {
    ++line;
    const std::vector<std::string_view> words = split_blanks(text.substr(0, text.find('#')));
    if (words.empty()) {
      continue;
    }
    std::string_view count = words.size() == 2 ? words[1] : std::string_view();
    if (count.starts_with("slots=")) {
      count.remove_prefix(6);
    }
    const auto gpus = to_int(count);
    if (!gpus || *gpus < 1 || *gpus > 4096) {
      throw Error(fmt::format("'{}' is no host with its GPUs", printable(text)))
          .at(hostfile, line)
          .expected("ADDRESS slots=N, or ADDRESS N");
    }
    Node node{.address = std::string(words[0]), .gpus = static_cast<int>(*gpus)};
    describe(node, document);
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    throw Error("no hosts").at(hostfile).expected("one line a server: ADDRESS slots=N");
  }
  return nodes;
}

}  // namespace lockstep::metis
