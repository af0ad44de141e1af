#include "simulator/replay/flow_graph.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {
namespace {

/// The hops of all slots, and which ports can bind: those where flows begin, that carry parts of
/// flows, or that the ports before them can fill.
class Ports {
 public:
  Ports(const Topology& topology, const PathFinder& paths)
      : capacity_(2 * topology.links.size()), ports_(2 * topology.links.size()) {
    for (std::size_t port = 0; port < capacity_.size(); ++port) {
      capacity_[port] = paths.capacity(PortId(port));
    }
  }

  void add(const std::vector<MaxMin::Term>& path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      Port& port = ports_[path[i].constraint.index()];
      port.used = true;
      if (port.binds) {
        continue;
      }
      if (i == 0 || path[i].coefficient != 1 || path[i - 1].coefficient != 1) {
        port.binds = true;
        continue;
      }
      const std::int32_t before = path[i - 1].constraint.value;
      if (std::ranges::find(port.before, before) == port.before.end()) {
        port.before.push_back(before);
        port.inflow += capacity_[static_cast<std::size_t>(before)];
        port.binds = port.inflow > capacity_[path[i].constraint.index()];
      }
    }
  }

  /// Numbers the ports that bind and appends their capacities.
  void number(std::vector<double>& capacity) {
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      if (ports_[port].used && ports_[port].binds) {
        ports_[port].constraint = static_cast<std::int32_t>(capacity.size());
        capacity.push_back(capacity_[port]);
      }
    }
  }
  /// -1 where the port does not bind.
  std::int32_t constraint_of(ConstraintId port) const { return ports_[port.index()].constraint; }

 private:
  struct Port {
    bool used = false, binds = false;
    double inflow = 0;
    std::vector<std::int32_t> before;
    std::int32_t constraint = -1;
  };
  std::vector<double> capacity_;
  std::vector<Port> ports_;
};

}  // namespace

FlowGraph make_flow_graph(const Schedule& schedule, const std::vector<NodeId>& nodes,
                          const Topology& topology, const FlowOptions& flow,
                          const FlowGraphOptions& options) {
  LOCKSTEP_CHECK(schedule.chunk_sizes.empty(), "transfers of a slot have one size");
  PathFinder paths(topology, flow);
  Ports ports(topology, paths);
  FlowGraph graph;
  const std::size_t count = schedule.slots.size();
  graph.slots.resize(count);
  graph.term_begin.reserve(count + 1);
  graph.wait_begin = schedule.wait_begin;
  graph.wait = schedule.wait;
  std::vector<MaxMin::Term> hops;
  for (std::size_t i = 0; i < count; ++i) {
    const Slot& slot = schedule.slots[i];
    FlowGraph::Slot& result = graph.slots[i];
    const Path& path = paths.next(nodes[static_cast<std::size_t>(slot.source)],
                                  nodes[static_cast<std::size_t>(slot.destination)], slot.channel);
    const Bytes wire = paths.wire_bytes(schedule.bytes(slot, 0));
    result.bits = static_cast<double>(wire.count()) * 8;
    result.latency =
        path.propagation + path.ack +
        (wire < flow.payload + flow.header ? paths.pipeline(path.ports, wire) : path.pipeline);
    result.forward_latency = schedule.start_latency(slot, options.send_latency);
    result.start_latency = result.forward_latency + schedule.launch_latency();
    if (!options.entry.empty() && slot.source < schedule.ranks) {
      result.entry = options.entry[static_cast<std::size_t>(slot.source)];
    }
    result.count = slot.count;
    ports.add(path.ports);
    hops.insert(hops.end(), path.ports.begin(), path.ports.end());
    graph.term_begin.push_back(static_cast<std::int32_t>(hops.size()));
  }
  ports.number(graph.capacity);
  std::size_t hop = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto end = static_cast<std::size_t>(graph.term_begin[i + 1]);
    for (; hop < end; ++hop) {
      const std::int32_t constraint = ports.constraint_of(hops[hop].constraint);
      if (constraint >= 0) {
        graph.term.push_back({ConstraintId(constraint), hops[hop].coefficient});
      }
    }
    graph.term_begin[i + 1] = static_cast<std::int32_t>(graph.term.size());
  }
  return graph;
}

}  // namespace lockstep
