#include "topologies/fold.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/sets.h"

namespace lockstep {
namespace {

class Folder {
 public:
  explicit Folder(const Topology& topology)
      : topology_(topology), adjacency_(topology), sets_(topology.nodes.size()) {}

  TopologyPart run() {
    std::vector<TopologyPart> parts = servers();
    std::int32_t highest = 0;
    for (const Node& node : topology_.nodes) {
      highest = std::max<std::int32_t>(highest, node.tier);
    }
    for (std::int32_t tier = 1; tier <= highest; ++tier) {
      parts = raise(std::move(parts), tier);
    }
    if (parts.size() == 1) {
      return std::move(parts[0]);
    }
    TopologyPart root;
    root.tier = highest + 1;
    for (const TopologyPart& part : parts) {
      root.gpu_count += part.gpu_count;
    }
    root.children = std::move(parts);
    return root;
  }

 private:
  const Node& node(NodeId id) const { return topology_.nodes[id.index()]; }

  /// The nodes' links by kind of the other end and class, as text.
  std::string links_text(const std::vector<NodeId>& nodes) const {
    std::map<std::tuple<NodeKind, std::uint8_t, std::int32_t>, std::int64_t> counts;
    for (const NodeId id : nodes) {
      for (const Neighbour& n : adjacency_.of(id)) {
        const std::int32_t link_class = topology_.links[n.port.index() / 2].link_class;
        ++counts[{node(n.node).kind, node(n.node).tier, link_class}];
      }
    }
    std::string text;
    for (const auto& [key, count] : counts) {
      text += fmt::format("{}/{}/{}*{} ", static_cast<int>(std::get<0>(key)), std::get<1>(key),
                          std::get<2>(key), count);
    }
    return text;
  }

  std::vector<TopologyPart> servers() {
    std::map<std::int32_t, std::size_t> index;
    std::vector<TopologyPart> parts;
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      const Node& at = topology_.nodes[i];
      if (at.kind == NodeKind::kSwitch) {
        continue;
      }
      const auto [found, added] = index.emplace(at.server, parts.size());
      if (added) {
        parts.emplace_back();
      }
      TopologyPart& part = parts[found->second];
      (at.kind == NodeKind::kGpu ? part.gpus : part.nvswitches).emplace_back(i);
    }
    // A domain of NVSwitches alone is in no picture.
    std::erase_if(parts, [](const TopologyPart& part) { return part.gpus.empty(); });
    for (TopologyPart& part : parts) {
      part.gpu_count = static_cast<std::int64_t>(part.gpus.size());
      std::map<std::int16_t, int> types;
      for (const NodeId gpu : part.gpus) {
        ++types[node(gpu).gpu_type];
        sets_.join(part.gpus[0].index(), gpu.index());
      }
      for (const auto& [type, count] : types) {
        part.shape += fmt::format("{}x{} ", type, count);
      }
      part.shape += fmt::format("nv{} ", part.nvswitches.size()) + links_text(part.gpus);
    }
    return parts;
  }

  std::vector<TopologyPart> raise(std::vector<TopologyPart> parts, std::int32_t tier) {
    std::vector<NodeId> switches;
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      if (topology_.nodes[i].kind == NodeKind::kSwitch && topology_.nodes[i].tier == tier) {
        switches.emplace_back(i);
      }
    }
    for (const NodeId id : switches) {
      for (const Neighbour& n : adjacency_.of(id)) {
        const Node& other = node(n.node);
        if (other.kind == NodeKind::kGpu ||
            (other.kind == NodeKind::kSwitch && other.tier < tier && other.tier > 0)) {
          sets_.join(id.index(), n.node.index());
        }
      }
    }
    std::map<std::size_t, std::size_t> index;
    std::vector<TopologyPart> raised;
    for (TopologyPart& part : parts) {
      const auto [found, added] = index.emplace(sets_.find(first_gpu(part)), raised.size());
      if (added) {
        raised.emplace_back();
        raised.back().tier = tier;
      }
      raised[found->second].gpu_count += part.gpu_count;
      raised[found->second].children.push_back(std::move(part));
    }
    for (const NodeId id : switches) {
      if (const auto found = index.find(sets_.find(id.index())); found != index.end()) {
        raised[found->second].switches.push_back(id);
      }
    }
    for (TopologyPart& part : raised) {
      if (part.switches.empty() && part.children.size() == 1) {
        TopologyPart only = std::move(part.children[0]);
        part = std::move(only);
        continue;
      }
      std::map<std::string_view, std::int64_t> shapes;
      for (const TopologyPart& child : part.children) {
        ++shapes[child.shape];
      }
      part.shape = fmt::format("tier{} {} switches {}", tier, part.switches.size(),
                               links_text(part.switches));
      for (const auto& [shape, count] : shapes) {
        part.shape += fmt::format("({})*{} ", shape, count);
      }
    }
    return raised;
  }

  static std::size_t first_gpu(const TopologyPart& part) {
    const TopologyPart* at = &part;
    while (at->gpus.empty()) {
      at = &at->children[0];
    }
    return at->gpus[0].index();
  }

  const Topology& topology_;
  Adjacency adjacency_;
  Sets sets_;
};

}  // namespace

TopologyPart fold(const Topology& topology) { return Folder(topology).run(); }

}  // namespace lockstep
