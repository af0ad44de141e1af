#include "simulator/replay/declared_fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/replay/flow_graph_run.h"

namespace lockstep {
namespace {

constexpr double kWeightUnit = 0x1p40;  ///< of MaxMin
/// More orbits of ranks than this part of them are not worth it.
constexpr std::int64_t kWorthwhile = 8;

FlowOptions sprayed(FlowOptions flow) {
  flow.routes.spray = true;
  return flow;
}

/// The GPUs of each server in order of id, each with the switches that it hangs on.
bool servers_are_alike(const Topology& topology) {
  const Adjacency adjacency(topology);
  std::map<std::int32_t, std::vector<std::vector<std::int32_t>>> servers;
  for (const NodeId gpu : topology.gpus()) {
    std::vector<std::int32_t>& leaves = servers[topology.nodes[gpu.index()].server].emplace_back();
    for (const Neighbour& n : adjacency.of(gpu)) {
      if (topology.nodes[n.node.index()].kind == NodeKind::kSwitch) {
        leaves.push_back(n.node.value);
      }
    }
  }
  // The rail of each place: the first place on the same leaves.
  std::vector<std::ptrdiff_t> pattern, first;
  for (const auto& [server, places] : servers) {
    pattern.clear();
    for (const auto& leaves : places) {
      pattern.push_back(std::ranges::find(places, leaves) - places.begin());
    }
    if (first.empty()) {
      first = pattern;
    }
    if (pattern != first) {
      return false;
    }
  }
  return true;
}

/// Tells ranks from other GPUs and by when they enter.
std::vector<std::uint64_t> colours(const LoneCollective& collective, const Topology& topology) {
  std::vector<std::uint64_t> colour(topology.nodes.size());
  for (std::size_t rank = 0; rank < collective.nodes.size(); ++rank) {
    const Time entry = collective.entry.empty() ? Time() : collective.entry[rank];
    colour[collective.nodes[rank].index()] = 1 + static_cast<std::uint64_t>(entry.count_ps());
  }
  return colour;
}

}  // namespace

DeclaredFold::DeclaredFold(const LoneCollective& collective, const Topology& topology,
                           const FlowOptions& flow, Orbits orbits)
    : flow_(sprayed(flow)),
      single_paths_(!flow.routes.spray),
      paths_(topology, flow_),
      orbits_(std::move(orbits)),
      crossed_(orbits_.port_size.size()),
      weight_(orbits_.port_size.size()) {
  setting_.nodes = collective.nodes;
  setting_.entry = collective.entry;
  setting_.send_latency = collective.send_latency;
}

std::optional<DeclaredFold> DeclaredFold::make(const LoneCollective& collective,
                                               const Leaving& leaving, const Topology& topology,
                                               const FlowOptions& flow) {
  if (flow.fresh_ports || flow.routes.rail_affinity ||
      (flow.routes.pxn && !servers_are_alike(topology))) {
    return std::nullopt;
  }
  DeclaredFold fold(collective, topology, flow,
                    find_orbits(topology, colours(collective, topology), flow.routes.pxn));
  std::map<std::int32_t, std::pair<std::int32_t, std::int64_t>> ranks;  // first of an orbit, size
  for (std::size_t rank = 0; rank < collective.nodes.size(); ++rank) {
    const std::int32_t orbit = fold.orbits_.node[collective.nodes[rank].index()];
    ++ranks.try_emplace(orbit, static_cast<std::int32_t>(rank), 0).first->second.second;
  }
  if (std::ssize(ranks) * kWorthwhile > std::ssize(collective.nodes)) {
    return std::nullopt;
  }
  for (const auto& [orbit, rank] : ranks) {
    fold.add_rank(leaving(rank.first), rank.second);
    if (!fold.even_) {
      return std::nullopt;
    }
  }
  if (!fold.find_binding(topology) || !fold.make_terms()) {
    return std::nullopt;
  }
  return fold;
}

/// Sets kind_ and numbers_; paths_ holds the path until the next call.
void DeclaredFold::describe(const Schedule& schedule, const Slot& slot) {
  const Path& path =
      paths_.next(setting_.nodes[at(slot.source)], setting_.nodes[at(slot.destination)], 0);
  numbers_ = FlowGraphBuilder::numbers(schedule, slot, setting_, flow_, paths_, path);
  limit_ = paths_.limit(path.window, schedule.bytes(slot, 0));
  on_.clear();
  for (const MaxMin::Term& hop : path.ports) {
    const std::int32_t orbit = orbits_.port[hop.constraint.index()];
    if (weight_[at(orbit)] == 0) {
      on_.push_back(orbit);
    }
    weight_[at(orbit)] += std::llround(hop.coefficient * kWeightUnit);
  }
  std::ranges::sort(on_);
  kind_ = {std::bit_cast<std::int64_t>(numbers_.bits),
           numbers_.latency.count_ps(),
           numbers_.start_latency.count_ps(),
           numbers_.entry.count_ps(),
           numbers_.count,
           std::bit_cast<std::int64_t>(limit_.fresh),
           std::bit_cast<std::int64_t>(limit_.steady)};
  for (const std::int32_t orbit : on_) {
    kind_.push_back(orbit);
    kind_.push_back(std::exchange(weight_[at(orbit)], 0));
  }
  note_crossings(path);
}

/// What BindingPorts goes by, for orbits.
void DeclaredFold::note_crossings(const Path& path) {
  for (std::size_t i = 0; i < path.ports.size(); ++i) {
    const MaxMin::Term& hop = path.ports[i];
    even_ = even_ && !(single_paths_ && hop.coefficient != 1);
    Crossed& crossed = crossed_[at(orbits_.port[hop.constraint.index()])];
    crossed.port = hop.constraint.value;
    if (crossed.binds || i == 0 || hop.coefficient != 1 || path.ports[i - 1].coefficient != 1) {
      crossed.binds = true;
      continue;
    }
    const std::int32_t before = orbits_.port[path.ports[i - 1].constraint.index()];
    if (std::ranges::find(crossed.before, before) == crossed.before.end()) {
      crossed.before.push_back(before);
    }
  }
}

void DeclaredFold::add_rank(const Schedule& leaving, std::int64_t copies) {
  LOCKSTEP_CHECK(leaving.wait.empty(), "declared slots wait for nothing");
  for (const Slot& slot : leaving.slots) {
    describe(leaving, slot);
    const auto next = static_cast<std::int32_t>(kinds_.size());
    const auto [found, is_new] = classes_.try_emplace(kind_, next);
    if (is_new) {
      kinds_.push_back(kind_);
      graph_.slots.push_back(numbers_);
      graph_.slots.back().copies = 0;
      graph_.limits.push_back(limit_);
    }
    graph_.slots[at(found->second)].copies += copies;
    slots_ += copies;
  }
}

/// Which ports can bind, by BindingPorts' rule as far as orbits tell. Between the ports of one
/// orbit that lead to it, of equal loads, a port that just takes them all fills up when they do, so
/// that it does not matter whether it counts.
bool DeclaredFold::find_binding(const Topology& topology) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> into;  // (node, orbit of ports)
  for (std::size_t port = 0; port < orbits_.port.size(); ++port) {
    const Link& link = topology.links[port / 2];
    ++into[{(port % 2 == 0 ? link.b : link.a).value, orbits_.port[port]}];
  }
  for (Crossed& crossed : crossed_) {
    if (crossed.binds || crossed.port < 0) {
      continue;
    }
    const Link& link = topology.links[at(crossed.port) / 2];
    const NodeId tail = crossed.port % 2 == 0 ? link.a : link.b;
    __extension__ using Wide = __int128;
    const auto units = [&](const Crossed& of) -> Wide {
      return FluidNetwork::units(paths_.capacity(PortId(of.port)));
    };
    Wide least = 0, most = 0;
    for (const std::int32_t before : crossed.before) {
      least += units(crossed_[at(before)]);
      most += units(crossed_[at(before)]) * into[{tail.value, before}];
    }
    const Wide capacity = units(crossed);
    crossed.binds = most > capacity;
    if (crossed.binds && least <= capacity && crossed.before.size() > 1) {
      return false;
    }
  }
  return true;
}

/// The coefficients of the classes; false if they do not come out whole.
bool DeclaredFold::make_terms() {
  __extension__ using Wide = __int128;
  std::vector<std::int32_t> constraint(crossed_.size(), -1);
  constexpr std::size_t kNumbers = 7;  // of a kind, before its ports
  if (std::ranges::count(graph_.limits, RateLimit{}) == std::ssize(graph_.limits)) {
    graph_.limits.clear();
  }
  for (std::size_t c = 0; c < kinds_.size(); ++c) {
    for (std::size_t i = kNumbers; i < kinds_[c].size(); i += 2) {
      const auto orbit = static_cast<std::size_t>(kinds_[c][i]);
      if (!crossed_[orbit].binds) {
        continue;
      }
      if (constraint[orbit] < 0) {
        constraint[orbit] = static_cast<std::int32_t>(graph_.capacity.size());
        graph_.capacity.push_back(paths_.capacity(PortId(crossed_[orbit].port)));
      }
      const Wide all = static_cast<Wide>(kinds_[c][i + 1]) * graph_.slots[c].copies;
      const std::int64_t ports = orbits_.port_size[orbit];
      if (all % ports != 0 || all / ports > (Wide{1} << 62)) {
        return false;
      }
      graph_.term.push_back(
          {ConstraintId(constraint[orbit]),
           static_cast<double>(static_cast<std::int64_t>(all / ports)) / kWeightUnit});
    }
    graph_.term_begin.push_back(static_cast<std::int32_t>(graph_.term.size()));
    graph_.wait_begin.push_back(0);
  }
  return true;
}

std::int32_t DeclaredFold::class_of(const Schedule& schedule, const Slot& slot) {
  describe(schedule, slot);
  const auto found = classes_.find(kind_);
  return found == classes_.end() ? -1 : found->second;
}

namespace {

/// Runs the whole collective, every slot, and compares.
void verify(const LoneCollective& collective, const Schedule& schedule, const Topology& topology,
            const FlowOptions& flow, DeclaredFold& fold, const FlowGraphTimes& times) {
  FlowGraphBuilder builder(topology, flow);
  FlowGraphBuilder::Setting setting;
  setting.nodes = collective.nodes;
  setting.entry = collective.entry;
  setting.send_latency = collective.send_latency;
  builder.add(schedule, setting);
  const FlowGraphTimes full = run_flow_graph(builder.finish(), /*fast_forward=*/false);
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const std::int32_t of = fold.class_of(schedule, schedule.slots[i]);
    if (of < 0 || times.sent[at(of)] != full.sent[i] ||
        times.delivered[at(of)] != full.delivered[i]) {
      throw Error(fmt::format("slot {} ends at {} ps in full, and not so as one of class {}", i,
                              full.delivered[i].count_ps(), of))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
}

}  // namespace

std::optional<LoneCollectiveResult> run_declared(
    const LoneCollective& collective, const DeclaredFold::Leaving& leaving,
    const std::function<std::shared_ptr<const Schedule>()>& whole, const Topology& topology,
    const FlowOptions& flow, const LoneCollectiveOptions& options) {
  const bool folds = options.symmetry && flow.is_steady() && collective.is_steady();
  std::optional<DeclaredFold> fold =
      folds ? DeclaredFold::make(collective, leaving, topology, flow) : std::nullopt;
  if (!fold) {
    return std::nullopt;
  }
  const FlowGraphTimes times = run_flow_graph(fold->graph(), options.fast_forward);
  LoneCollectiveResult result;
  result.slots = fold->slots();
  result.classes = std::ssize(fold->graph().slots);
  result.transfers = times.transfers;
  result.simulated = times.simulated;
  for (const Time entry : collective.entry) {
    result.end = std::max(result.end, entry);
  }
  for (std::size_t i = 0; i < times.sent.size(); ++i) {
    result.end = std::max({result.end, times.sent[i], times.delivered[i]});
  }
  if (options.verify) {
    verify(collective, *whole(), topology, flow, *fold, times);
  }
  return result;
}

}  // namespace lockstep
