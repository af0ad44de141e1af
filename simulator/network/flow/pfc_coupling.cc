#include "simulator/network/flow/pfc_coupling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/index.h"

namespace lockstep {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Bit/s of the first link of the first GPU; without limit where there is none.
double first_rate(const Topology& topology) {
  const std::vector<NodeId> gpus = topology.gpus();
  for (std::size_t i = 0; i < topology.links.size() && !gpus.empty(); ++i) {
    if (topology.links[i].a == gpus.front() || topology.links[i].b == gpus.front()) {
      return static_cast<double>(topology.class_of(LinkId(i)).rate.bits_per_second());
    }
  }
  return kNever;
}

/// As ns3::Fabric's PfcAlphaByRate has it.
double alpha_of(double rate, double first, double alpha) {
  for (; rate > first && alpha < 1; rate /= 2) {
    alpha = std::min(1.0, 2 * alpha);
  }
  return alpha;
}

}  // namespace

PfcCoupling::PfcCoupling(const Topology& topology, const TransportTerms& transport, Bytes packet)
    : shared_(topology.nodes.size()),
      fixed_(topology.nodes.size()),
      to_(2 * topology.links.size()),
      from_(to_.size()),
      capacity_(to_.size()),
      propagation_(to_.size()),
      alpha_(to_.size()),
      host_(topology.nodes.size()),
      packet_(8 * static_cast<double>(packet.count())),
      burst_(packet_ * static_cast<double>(transport.ack_interval) / 2),
      reserve_(8 * static_cast<double>(transport.port_reserve.count())),
      resume_(8 * static_cast<double>(transport.resume_offset.count())),
      least_(kNever),
      ingress_(to_.size()) {
  const bool pauses = transport.pfc && transport.buffer > Bytes();
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    host_[node] = topology.nodes[node].kind == NodeKind::kGpu;
    if (pauses && topology.nodes[node].kind == NodeKind::kSwitch) {
      shared_[node] = 8 * static_cast<double>(transport.buffer.count());
    }
  }
  const double first = transport.pfc_alpha_by_rate ? first_rate(topology) : kNever;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const LinkClass& kind = topology.class_of(LinkId(i));
    const auto rate = static_cast<double>(kind.rate.bits_per_second());
    // The headroom of each end: three delays, and packets; and its reserve.
    const double apart =
        3 * kind.delay.seconds() * rate +
        8 * static_cast<double>(
                (packet * transport.headroom_packets + transport.port_reserve).count());
    for (const auto& [port, from, to] :
         {std::tuple(2 * i, link.a, link.b), std::tuple(2 * i + 1, link.b, link.a)}) {
      from_[port] = from.value;
      to_[port] = to.value;
      capacity_[port] = rate;
      propagation_[port] = kind.delay.seconds();
      alpha_[port] = alpha_of(rate, first, transport.pfc_alpha);
      shared_[to.index()] -= shared_[to.index()] > 0 ? apart : 0;
    }
  }
  std::vector<double> ports(shared_.size());  // per node
  for (const std::int32_t to : to_) {
    ++ports[at(to)];
  }
  for (std::size_t node = 0; node < shared_.size(); ++node) {
    double& bits = shared_[node];
    bits = bits == 0 ? 0 : std::max(bits, 4.0 * static_cast<double>(transport.buffer.count()));
    if (bits == 0) {
      continue;
    }
    if (!transport.pfc_dynamic) {
      const auto given = static_cast<double>(transport.pfc_threshold.count());
      fixed_[node] = given > 0 ? 8 * given : bits / ports[node];
    }
    const double alpha = transport.pfc_alpha;
    least_ = std::min(least_, fixed_[node] > 0 ? fixed_[node] : alpha * bits / (1 + alpha));
  }
}

void PfcCoupling::apply(std::vector<Flow>& flows) {
  waiting_.clear();
  paused_.clear();
  for (std::size_t i = 0; i < flows.size(); ++i) {
    flows[i].here = flows[i].waiting;
    flows[i].delay = flows[i].unsent = 0;
    if (flows[i].hop > 0 && flows[i].waiting > 0) {
      waiting_.push_back({static_cast<std::int32_t>(i), flows[i].hop, flows[i].waiting});
    }
  }
  for (bool first = true; !waiting_.empty(); first = false) {
    hold(flows);
    pause();
    if (first) {
      share(flows);
    } else {
      hold_up_at_switches(flows);
    }
    hold_up_at_nics(flows);
    move_on(flows);
    for (const std::int32_t port : used_) {
      ingress_[at(port)] = {};
    }
    used_.clear();
    std::swap(waiting_, further_);
  }
}

/// What waits, by the port that it came by, and what else there is of packets.
void PfcCoupling::hold(const std::vector<Flow>& flows) {
  for (const Waiting& waiting : waiting_) {
    const Flow& flow = flows[at(waiting.flow)];
    const std::int32_t port = flow.way[at(waiting.hop - 1)];
    Ingress& ingress = ingress_[at(port)];
    if (ingress.flows == 0) {
      used_.push_back(port);
    }
    ++ingress.flows;
    ingress.held += waiting.bits;
    ingress.rate += flow.rate;
    ingress.beside = burst_ - reserve_;
  }
  for (const Flow& flow : flows) {
    for (std::size_t hop = 1; hop < flow.way.size(); ++hop) {
      Ingress& ingress = ingress_[at(flow.way[hop - 1])];
      if (ingress.flows > 0 && !(flow.waiting > 0 && flow.hop == static_cast<std::int32_t>(hop))) {
        ingress.beside += packet_ * flow.rate / capacity_[at(flow.way[hop])];
      }
    }
  }
}

/// Finds T of each port, where it is not fixed: with a(i) the alpha of a port, A the sum of those
/// of the paused ports and the others holding U, F = B - U - A F is free and T(i) = a(i) F.
void PfcCoupling::pause() {
  std::map<std::int32_t, std::vector<std::int32_t>> by_node;
  for (const std::int32_t port : used_) {
    if (shared_[at(to_[at(port)])] > 0) {
      by_node[to_[at(port)]].push_back(port);
    }
  }
  for (auto& [node, ports] : by_node) {
    const auto used = [&](std::int32_t port) {
      return std::max(0.0, ingress_[at(port)].held + ingress_[at(port)].beside);
    };
    const bool fixed = fixed_[at(node)] > 0;
    const auto part = [&](std::int32_t port) { return fixed ? 1 : alpha_[at(port)]; };
    constexpr double kLeast = 1e-9;  // an alpha may be 0
    std::ranges::sort(ports, {},
                      [&](std::int32_t port) { return used(port) / std::max(kLeast, part(port)); });
    double rest = 0;    // held by the ports that are not paused
    double paused = 0;  // sum of the others' alphas
    for (const std::int32_t port : ports) {
      paused += part(port);
    }
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const double limit = fixed ? fixed_[at(node)] : (shared_[at(node)] - rest) / (1 + paused);
      if (used(ports[i]) <= part(ports[i]) * limit) {
        rest += used(ports[i]);
        paused -= part(ports[i]);
        continue;
      }
      for (; i < ports.size(); ++i) {
        Ingress& ingress = ingress_[at(ports[i])];
        ingress.paused = true;
        ingress.limit = std::clamp(part(ports[i]) * limit - ingress.beside, 0.0, ingress.held);
      }
    }
  }
}

/// Ports that wait for one egress share it by what they hold.
void PfcCoupling::share(std::vector<Flow>& flows) {
  std::map<std::int32_t, double> held;  // for each egress
  for (const Waiting& waiting : waiting_) {
    const Flow& flow = flows[at(waiting.flow)];
    held[flow.way[at(waiting.hop)]] += kept(waiting, ingress_[at(flow.way[at(waiting.hop - 1)])]);
  }
  for (const Waiting& waiting : waiting_) {
    Flow& flow = flows[at(waiting.flow)];
    const Ingress& ingress = ingress_[at(flow.way[at(waiting.hop - 1)])];
    const std::int32_t egress = flow.way[at(waiting.hop)];
    flow.here = kept(waiting, ingress);
    if (ingress.paused) {
      flow.cap = std::min(flow.cap, flow.here / held[egress] * capacity_[at(egress)]);
    }
  }
}

/// Those who share a paused link with what waits for it at a switch.
void PfcCoupling::hold_up_at_switches(std::vector<Flow>& flows) {
  struct Queue {
    double kept = 0, limit = kNever;
    double passing = 0;  ///< rate of those who wait to no blame of theirs
  };
  // Of those who come by one ingress for one of these queues, how many wait to no blame of theirs.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> victims;
  for (const Flow& flow : flows) {
    for (std::size_t hop = 1; hop + 1 < flow.way.size() && flow.waiting <= 0; ++hop) {
      if (paused_.contains(flow.way[hop])) {
        ++victims[{flow.way[hop], flow.way[hop - 1]}];
      }
    }
  }
  std::map<std::int32_t, Queue> queues;
  for (const Waiting& waiting : waiting_) {
    const Flow& flow = flows[at(waiting.flow)];
    const std::int32_t port = flow.way[at(waiting.hop - 1)];
    const Ingress& ingress = ingress_[at(port)];
    Queue& queue = queues[flow.way[at(waiting.hop)]];
    const auto found = victims.find({flow.way[at(waiting.hop)], port});
    const double others = found == victims.end() || !ingress.paused ? 0 : found->second;
    queue.kept += kept(waiting, ingress) * ingress.flows / (ingress.flows + others);
    queue.limit = ingress.paused ? std::min(queue.limit, ingress.limit) : queue.limit;
  }
  const auto is_held_up = [&](const Flow& flow, std::size_t hop) {
    const bool to_blame = flow.waiting > 0 && flow.hop > static_cast<std::int32_t>(hop);
    return !to_blame && queues.contains(flow.way[hop]);
  };
  for (const Flow& flow : flows) {
    for (std::size_t hop = 0; hop + 1 < flow.way.size(); ++hop) {
      if (is_held_up(flow, hop)) {
        queues[flow.way[hop]].passing += flow.rate;
      }
    }
  }
  for (Flow& flow : flows) {
    for (std::size_t hop = 0; hop + 1 < flow.way.size(); ++hop) {
      if (!is_held_up(flow, hop)) {
        continue;
      }
      const Queue& queue = queues[flow.way[hop]];
      const std::size_t link = at(flow.way[hop]);
      const double blamed = paused_.at(flow.way[hop]);
      const double pause =
          resume_ / blamed + 2 * propagation_[link] * capacity_[link] / (blamed + queue.passing);
      const double delay = std::max(queue.kept / blamed, pause);
      flow.delay += delay;
      flow.cap =
          std::min({flow.cap, queue.limit / delay, flow.window / (flow.round_trip + flow.delay)});
    }
  }
}

/// Those who share a paused NIC with what waits beyond it.
void PfcCoupling::hold_up_at_nics(std::vector<Flow>& flows) {
  for (Flow& flow : flows) {
    if (flow.way.empty() || (flow.waiting > 0 && flow.hop > 0)) {
      continue;
    }
    const Ingress& ingress = ingress_[at(flow.way.front())];
    if (ingress.paused) {
      flow.cap = std::min(flow.cap, ingress.rate / ingress.flows);
    }
  }
}

/// What waits on the other sides of paused links.
void PfcCoupling::move_on(std::vector<Flow>& flows) {
  further_.clear();
  paused_.clear();
  for (const Waiting& waiting : waiting_) {
    Flow& flow = flows[at(waiting.flow)];
    const std::int32_t port = flow.way[at(waiting.hop - 1)];
    const Ingress& ingress = ingress_[at(port)];
    if (!ingress.paused) {
      continue;
    }
    const double bits = waiting.bits - kept(waiting, ingress);
    if (host_[at(from_[at(port)])] || waiting.hop == 1) {
      flow.unsent += bits;
    } else {
      further_.push_back({waiting.flow, waiting.hop - 1, bits});
      paused_[port] = ingress.rate;
    }
  }
}

}  // namespace lockstep
