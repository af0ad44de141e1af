#pragma once

#include <algorithm>
#include <vector>

#include "simulator/network/network_engine.h"

namespace lockstep::testing {

/// A network without contention: every transfer is sent after 1 ns a byte and delivered 1 us later.
class FakeNetwork : public NetworkEngine {
 public:
  Time now() const override { return now_; }

  ConnectionId connect(NodeId, NodeId, std::int32_t) override { return ConnectionId(0); }

  using NetworkEngine::start;
  void start(ConnectionId, Bytes bytes, Time when, std::uint64_t tag) override {
    const Time sent = when + Time::ns(bytes.count());
    pending_.push_back({sent, tag, NetworkEvent::Kind::kSent});
    pending_.push_back({sent + Time::us(1), tag, NetworkEvent::Kind::kDelivered});
    std::ranges::stable_sort(pending_, {}, &NetworkEvent::when);
  }

  Time advance(Time limit, std::vector<NetworkEvent>& events) override {
    if (pending_.empty() || pending_.front().when > limit) {
      now_ = limit == Time::max() ? now_ : limit;
      return now_;
    }
    now_ = pending_.front().when;
    const auto end = std::ranges::upper_bound(pending_, now_, {}, &NetworkEvent::when);
    events.insert(events.end(), pending_.begin(), end);
    pending_.erase(pending_.begin(), end);
    return now_;
  }

  std::vector<PortUse> port_use() const override { return {}; }

 private:
  Time now_;
  std::vector<NetworkEvent> pending_;
};

}  // namespace lockstep::testing
