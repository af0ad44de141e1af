#include "workloads/chakra_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// Places of nodes, for each node.
using Places = std::vector<std::vector<std::size_t>>;

void sort_and_unify(std::vector<std::size_t>& places) {
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

class Order {
 public:
  Order(const std::string& file, Warnings* warnings) : file_(file), warnings_(warnings) {}

  std::vector<OrderedChakraNode> of(std::string_view text) {
    read(text);
    find_waits();
    add_control();
    return sorted();
  }

 private:
  void warn(std::string_view what, std::size_t count = 1) {
    if (warnings_ != nullptr && count > 0) {
      warnings_->add(what, static_cast<std::int64_t>(count));
    }
  }

  /// The nodes, by id.
  void read(std::string_view text) {
    for (bool metadata = true; !text.empty(); metadata = false) {
      const std::optional<std::string_view> message = take_chakra_message(text);
      if (!message) {
        throw Error("the file is cut off within a message").at(file_);
      }
      if (metadata) {
        continue;
      }
      if (std::optional<ChakraNode> node = parse_chakra_node(*message)) {
        nodes_.push_back(std::move(*node));
      } else {
        warn("nodes that are damaged were passed over");
      }
    }
    if (nodes_.empty()) {
      throw Error("there are no nodes").at(file_).expected("a Chakra execution trace");
    }
    std::ranges::sort(nodes_, {}, &ChakraNode::id);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!place_.try_emplace(nodes_[i].id, i).second) {
        throw Error("two nodes have one id").at(chakra_node_place(file_, nodes_[i]));
      }
    }
  }

  std::vector<std::size_t> places_of(const std::vector<std::uint64_t>& ids) {
    std::vector<std::size_t> places;
    for (const std::uint64_t id : ids) {
      if (const auto known = place_.find(id); known != place_.end()) {
        places.push_back(known->second);
      } else {
        warn("dependencies on nodes that are not in the trace were passed over");
      }
    }
    sort_and_unify(places);
    return places;
  }

  /// What each node waits for by its data dependencies, and its control dependencies where it has
  /// none of those.
  void find_waits() {
    after_.resize(nodes_.size());
    control_.resize(nodes_.size());
    std::size_t beside_data = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].data_deps.empty()) {
        control_[i] = places_of(nodes_[i].ctrl_deps);
      } else {
        after_[i] = places_of(nodes_[i].data_deps);
        beside_data += nodes_[i].ctrl_deps.size();
      }
    }
    warn("control dependencies of nodes that have data dependencies were passed over", beside_data);
  }

  /// Adds the control dependencies that are part of no cycle: those between nodes that do not reach
  /// each other both ways.
  void add_control() {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const Places* all : {&after_, &control_}) {
        for (const std::size_t before : (*all)[i]) {
          boost::add_edge(before, i, graph);
        }
      }
    }
    std::vector<std::size_t> component(nodes_.size());
    boost::strong_components(graph, boost::make_iterator_property_map(
                                        component.begin(), boost::get(boost::vertex_index, graph)));
    std::size_t taken = 0, cyclic = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::size_t before : control_[i]) {
        if (component[before] == component[i]) {
          ++cyclic;
        } else {
          after_[i].push_back(before);
          ++taken;
        }
      }
    }
    warn("control dependencies that are part of a cycle were passed over", cyclic);
    warn("control dependencies of nodes without data dependencies: these wait for the others' end",
         taken);
  }

  std::vector<OrderedChakraNode> sorted() {
    std::vector<std::size_t> waits(nodes_.size());
    Places next(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      waits[i] = after_[i].size();
      for (const std::size_t before : after_[i]) {
        next[before].push_back(i);
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (waits[i] == 0) {
        ready.push(i);
      }
    }
    std::vector<std::int32_t> rank(nodes_.size());  // in the order
    std::vector<OrderedChakraNode> ordered;
    ordered.reserve(nodes_.size());
    while (!ready.empty()) {
      const std::size_t i = ready.top();
      ready.pop();
      rank[i] = static_cast<std::int32_t>(ordered.size());
      OrderedChakraNode& node = ordered.emplace_back();
      for (const std::size_t before : after_[i]) {
        node.after.push_back(rank[before]);
      }
      std::ranges::sort(node.after);
      for (const std::size_t later : next[i]) {
        if (--waits[later] == 0) {
          ready.push(later);
        }
      }
      node.node = std::move(nodes_[i]);
    }
    if (ordered.size() < nodes_.size()) {
      const auto stuck = std::ranges::find_if(waits, [](std::size_t n) { return n > 0; });
      throw Error("the node waits for itself, through others")
          .at(chakra_node_place(file_, nodes_[static_cast<std::size_t>(stuck - waits.begin())]))
          .expected("data dependencies without a cycle");
    }
    return ordered;
  }

  const std::string& file_;
  Warnings* warnings_;
  std::vector<ChakraNode> nodes_;
  std::unordered_map<std::uint64_t, std::size_t> place_;  // by id; never iterated
  Places after_, control_;
};

}  // namespace

std::vector<OrderedChakraNode> ordered_chakra_nodes(std::string_view text, const std::string& file,
                                                    Warnings* warnings) {
  return Order(file, warnings).of(text);
}

std::string chakra_node_place(const std::string& file, const ChakraNode& node) {
  return fmt::format("{}: node {} ({})", file, node.id, printable(node.name));
}

}  // namespace lockstep
