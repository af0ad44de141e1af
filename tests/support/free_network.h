#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "simulator/network/network_engine.h"
#include "simulator/replay/step_simulation.h"

namespace lockstep::testing {

/// A network on which every transfer arrives at once.
class FreeNetwork : public NetworkEngine {
 public:
  Time now() const override { return now_; }

  ConnectionId connect(NodeId, NodeId, std::int32_t) override { return ConnectionId(0); }

  using NetworkEngine::start;
  void start(ConnectionId, Bytes, Time when, std::uint64_t tag) override {
    pending_.push_back({when, tag, NetworkEvent::Kind::kSent});
    pending_.push_back({when, tag, NetworkEvent::Kind::kDelivered});
  }

  Time advance(Time limit, std::vector<NetworkEvent>& events) override {
    const auto first = std::ranges::min_element(pending_, {}, &NetworkEvent::when);
    if (first == pending_.end() || first->when > limit) {
      now_ = limit == Time::max() ? now_ : limit;
      return now_;
    }
    now_ = first->when;
    const auto due =
        std::stable_partition(pending_.begin(), pending_.end(),
                              [&](const NetworkEvent& event) { return event.when > now_; });
    events.insert(events.end(), due, pending_.end());
    pending_.erase(due, pending_.end());
    return now_;
  }

  std::vector<PortUse> port_use() const override { return {}; }

 private:
  Time now_;
  std::vector<NetworkEvent> pending_;
};

/// Simulates a workload on a server large enough, with communication that costs nothing: each
/// rank of a collective sends to the next.
inline StepResult simulate_free(const Workload& workload, StepOptions options = {}) {
  Topology topology;
  topology.nodes.resize(static_cast<std::size_t>(workload.jobs[0].parallel.gpus));
  const auto lap = [](CommType op, Bytes bytes, const GroupShape& shape) {
    auto schedule = std::make_shared<Schedule>();
    schedule->op = op;
    schedule->ranks = shape.ranks;
    schedule->chunk_bytes = bytes;
    const std::int32_t senders = op == CommType::kSendRecv ? 1 : shape.ranks;
    for (std::int32_t i = 0; i < senders; ++i) {
      schedule->add({.source = i, .destination = (i + 1) % shape.ranks}, {});
    }
    return std::shared_ptr<const Schedule>(schedule);
  };
  options.send_latency = Time();
  return simulate_step(
      workload, topology, [] { return std::make_unique<FreeNetwork>(); }, lap, options);
}

}  // namespace lockstep::testing
