#include "simulator/replay/flow_graph.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {

namespace {

std::vector<double> capacities(const Topology& topology, const PathFinder& paths) {
  std::vector<double> capacity(2 * topology.links.size());
  for (std::size_t port = 0; port < capacity.size(); ++port) {
    capacity[port] = paths.capacity(PortId(port));
  }
  return capacity;
}

}  // namespace

FlowGraphBuilder::FlowGraphBuilder(const Topology& topology, const FlowOptions& flow)
    : flow_(flow), paths_(topology, flow), ports_(capacities(topology, paths_)) {}

std::int32_t FlowGraphBuilder::add(const Schedule& schedule, const Setting& setting) {
  LOCKSTEP_CHECK(schedule.chunk_sizes.empty(), "transfers of a slot have one size");
  const auto first = static_cast<std::int32_t>(graph_.slots.size());
  const auto slots = static_cast<std::int32_t>(schedule.slots.size());
  const std::int32_t connections = schedule.connections_of_slot();
  const std::size_t count = at(slots) * at(connections);
  if (first == 0) {
    graph_.slots.reserve(count);
    graph_.term_begin.reserve(count + 1);
    graph_.wait_begin.reserve(count + 1);
    constexpr std::size_t kHops = 6;  // up and down three tiers; what is not used takes no memory
    graph_.term.reserve(count * kHops);
  }
  for (std::int32_t k = 0; k < connections; ++k) {
    for (std::int32_t i = 0; i < slots; ++i) {
      const Slot& slot = schedule.slots[at(i)];
      if (k > 0) {
        add_like(graph_.slots.size() - at(slots));
      } else {
        add_new(schedule, setting, slot);
      }
      graph_.term_begin.push_back(static_cast<std::int32_t>(graph_.term.size()));
      for (const SlotWait& wait : schedule.waits(at(i))) {
        if (!schedule.separate_flows) {
          graph_.wait.push_back({first + wait.slot, wait.lag});
        } else if (const std::int32_t needed = wait.needed(k, slot.count); needed > 0) {
          graph_.wait.push_back({first + (needed - 1) * slots + wait.slot, 0});
        }
      }
      graph_.wait_begin.push_back(static_cast<std::int32_t>(graph_.wait.size()));
    }
  }
  return first;
}

void FlowGraphBuilder::add_new(const Schedule& schedule, const Setting& setting, const Slot& slot) {
  const Path& path =
      paths_.next(setting.nodes[static_cast<std::size_t>(slot.source)],
                  setting.nodes[static_cast<std::size_t>(slot.destination)], slot.channel);
  graph_.slots.push_back(numbers(schedule, slot, setting, flow_, paths_, path));
  if (const RateLimit limit = paths_.limit(path.window, schedule.bytes(slot, 0));
      limit != RateLimit{} || !graph_.limits.empty()) {
    graph_.limits.resize(graph_.slots.size());
    graph_.limits.back() = limit;
  }
  for (std::size_t hop_index = 0; hop_index < path.ports.size(); ++hop_index) {
    const MaxMin::Term& hop = path.ports[hop_index];
    if (spared_.empty()) {
      ports_.cross(path.ports, hop_index);
    } else if (spared_[hop.constraint.index()] != 0) {
      continue;
    } else {
      ports_.bind(hop.constraint.index());
    }
    graph_.term.push_back(hop);  // its port, until finish()
  }
}

/// One more slot like an earlier one, over the same ports.
void FlowGraphBuilder::add_like(std::size_t slot) {
  graph_.slots.push_back(FlowGraph::Slot(graph_.slots[slot]));
  if (!graph_.limits.empty()) {
    graph_.limits.resize(graph_.slots.size());
    graph_.limits.back() = graph_.limits[slot];
  }
  for (auto i = static_cast<std::size_t>(graph_.term_begin[slot]);
       i < static_cast<std::size_t>(graph_.term_begin[slot + 1]); ++i) {
    graph_.term.push_back(MaxMin::Term(graph_.term[i]));
  }
}

FlowGraph::Slot FlowGraphBuilder::numbers(const Schedule& schedule, const Slot& slot,
                                          const Setting& setting, const FlowOptions& flow,
                                          const PathFinder& paths, const Path& path) {
  const auto source = static_cast<std::size_t>(slot.source);
  const auto destination = static_cast<std::size_t>(slot.destination);
  FlowGraph::Slot result;
  const Bytes wire = paths.wire_bytes(schedule.bytes(slot, 0));
  result.bits = static_cast<double>(wire.count()) * 8;
  result.latency =
      path.propagation + path.ack +
      (wire < flow.payload + flow.header ? paths.pipeline(path.ports, wire) : path.pipeline);
  const Time latency = schedule.start_latency(slot, setting.send_latency);
  result.start_latency = latency + schedule.launch_latency();
  result.forward_latency = latency + setting.forward_latency;
  result.count = schedule.separate_flows ? 1 : slot.count;
  result.kind = setting.kind;
  if (!setting.entry.empty() && slot.source < schedule.ranks) {
    result.entry = setting.entry[source];
  }
  if (!setting.places.empty()) {
    result.source = slot.source < schedule.ranks ? setting.places[source] : -1;
    result.destination = slot.destination < schedule.ranks ? setting.places[destination] : -1;
  }
  return result;
}

FlowGraph FlowGraphBuilder::finish() {
  if (!graph_.limits.empty()) {
    graph_.limits.resize(graph_.slots.size());
  }
  constraint_of_.assign(ports_.size(), -1);  // numbered where they bind
  for (std::size_t port = 0; port < constraint_of_.size(); ++port) {
    if (ports_.binds(port)) {
      constraint_of_[port] = static_cast<std::int32_t>(graph_.capacity.size());
      graph_.capacity.push_back(ports_.capacity(port));
    }
  }
  std::size_t kept = 0, hop = 0;
  for (std::size_t i = 0; i < graph_.slots.size(); ++i) {
    const auto end = static_cast<std::size_t>(graph_.term_begin[i + 1]);
    for (; hop < end; ++hop) {
      const std::int32_t constraint = constraint_of_[graph_.term[hop].constraint.index()];
      if (constraint >= 0) {
        graph_.term[kept++] = {ConstraintId(constraint), graph_.term[hop].coefficient};
      }
    }
    graph_.term_begin[i + 1] = static_cast<std::int32_t>(kept);
  }
  graph_.term.resize(kept);
  graph_.term.shrink_to_fit();  // the largest part of a graph, and kept while its network is made
  return std::move(graph_);
}

}  // namespace lockstep
