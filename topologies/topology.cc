#include "topologies/topology.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {

void LinkClass::set_rate(Bandwidth other) {
  rate = other;
  rate_text = fmt::format("{}bps", other.bits_per_second());
}

void LinkClass::set_delay(Time other) {
  delay = other;
  delay_text = fmt::format("{}ps", other.count_ps());
}

std::vector<NodeId> Topology::gpus() const {
  std::vector<NodeId> ids;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == NodeKind::kGpu) {
      ids.emplace_back(i);
    }
  }
  return ids;
}

std::int32_t Topology::count(NodeKind kind) const {
  return static_cast<std::int32_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.kind == kind; }));
}

Adjacency::Adjacency(const Topology& topology) : begin_(topology.nodes.size() + 1) {
  for (const Link& link : topology.links) {
    ++begin_[link.a.index() + 1];
    ++begin_[link.b.index() + 1];
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) {
    begin_[i] += begin_[i - 1];
  }
  neighbours_.resize(topology.links.size() * 2);
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    neighbours_[next[link.a.index()]++] = {link.b, PortId(2 * i)};
    neighbours_[next[link.b.index()]++] = {link.a, PortId(2 * i + 1)};
  }
  for (std::size_t i = 0; i + 1 < begin_.size(); ++i) {
    std::stable_sort(neighbours_.begin() + static_cast<std::ptrdiff_t>(begin_[i]),
                     neighbours_.begin() + static_cast<std::ptrdiff_t>(begin_[i + 1]),
                     [](const Neighbour& x, const Neighbour& y) { return x.node < y.node; });
  }
}

}  // namespace lockstep
