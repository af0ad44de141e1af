#include "simulator/replay/flow_graph.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

/// The hops of all slots, and which ports can bind: those where flows begin, that carry parts of
/// flows, or that the ports before them can fill.
class FlowGraphBuilder::Ports {
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

FlowGraphBuilder::FlowGraphBuilder(const Topology& topology, const FlowOptions& flow)
    : flow_(flow), paths_(topology, flow), ports_(std::make_unique<Ports>(topology, paths_)) {}

FlowGraphBuilder::~FlowGraphBuilder() = default;

std::int32_t FlowGraphBuilder::add(const Schedule& schedule, const Setting& setting) {
  LOCKSTEP_CHECK(schedule.chunk_sizes.empty(), "transfers of a slot have one size");
  const auto first = static_cast<std::int32_t>(graph_.slots.size());
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const Slot& slot = schedule.slots[i];
    const auto source = static_cast<std::size_t>(slot.source);
    const auto destination = static_cast<std::size_t>(slot.destination);
    FlowGraph::Slot& result = graph_.slots.emplace_back();
    const Path& path = paths_.next(setting.nodes[source], setting.nodes[destination], slot.channel);
    const Bytes wire = paths_.wire_bytes(schedule.bytes(slot, 0));
    result.bits = static_cast<double>(wire.count()) * 8;
    result.latency =
        path.propagation + path.ack +
        (wire < flow_.payload + flow_.header ? paths_.pipeline(path.ports, wire) : path.pipeline);
    const Time latency = schedule.start_latency(slot, setting.send_latency);
    result.start_latency = latency + schedule.launch_latency();
    result.forward_latency = latency + setting.forward_latency;
    result.count = slot.count;
    result.kind = setting.kind;
    if (!setting.entry.empty() && slot.source < schedule.ranks) {
      result.entry = setting.entry[source];
    }
    if (!setting.places.empty()) {
      result.source = slot.source < schedule.ranks ? setting.places[source] : -1;
      result.destination = slot.destination < schedule.ranks ? setting.places[destination] : -1;
    }
    ports_->add(path.ports);
    for (const MaxMin::Term& hop : path.ports) {
      hops_.push_back({hop.constraint.value, static_cast<float>(hop.coefficient)});
      graph_.term.push_back(hop);  // its port, until finish()
    }
    hop_begin_.push_back(static_cast<std::int64_t>(hops_.size()));
    graph_.term_begin.push_back(static_cast<std::int32_t>(graph_.term.size()));
    for (const SlotWait& wait : schedule.waits(i)) {
      graph_.wait.push_back({first + wait.slot, wait.lag});
    }
    graph_.wait_begin.push_back(static_cast<std::int32_t>(graph_.wait.size()));
  }
  return first;
}

FlowGraph FlowGraphBuilder::finish() {
  ports_->number(graph_.capacity);
  std::size_t kept = 0, hop = 0;
  for (std::size_t i = 0; i < graph_.slots.size(); ++i) {
    const auto end = static_cast<std::size_t>(graph_.term_begin[i + 1]);
    for (; hop < end; ++hop) {
      const std::int32_t constraint = ports_->constraint_of(graph_.term[hop].constraint);
      if (constraint >= 0) {
        graph_.term[kept++] = {ConstraintId(constraint), graph_.term[hop].coefficient};
      }
    }
    graph_.term_begin[i + 1] = static_cast<std::int32_t>(kept);
  }
  graph_.term.resize(kept);
  return std::move(graph_);
}

}  // namespace lockstep
