#pragma once

#include <map>
#include <vector>

#include "simulator/network/network_engine.h"
#include "tests/support/fabrics.h"

namespace lockstep::testing {

/// Packets of 1000 B without headers: the wire carries what was sent, and one packet takes 20 ns at
/// 400 Gbps.
template <class Options>
Options bare(Options options = {}) {
  options.payload = Bytes(1000);
  options.header = Bytes(0);
  return options;
}

/// Adds a link of its own class.
inline LinkId link(FabricMaker& maker, NodeId a, NodeId b, Bandwidth rate,
                   Time delay = Time::ns(500)) {
  const LinkId id = maker.link(a, b);
  maker.topology.links[id.index()].link_class =
      static_cast<std::int32_t>(maker.topology.link_classes.size());
  maker.topology.link_classes.push_back({rate, delay, 0, "", "", ""});
  return id;
}

/// `gpus` servers of one GPU around one leaf: GPU i has id i.
inline Topology star(std::int32_t gpus) {
  FabricMaker maker;
  maker.topology.gpus_per_server = 1;
  for (std::int32_t i = 0; i < gpus; ++i) {
    maker.gpu(i);
  }
  const NodeId leaf = maker.leaf();
  for (std::int32_t i = 0; i < gpus; ++i) {
    maker.link(NodeId(i), leaf);
  }
  return maker.topology;
}

struct Outcome {
  Time sent, delivered;
  friend auto operator<=>(const Outcome&, const Outcome&) = default;
};

inline std::vector<NetworkEvent> run_to_end(NetworkEngine& engine) {
  std::vector<NetworkEvent> events;
  for (std::size_t seen = 0;; seen = events.size()) {
    engine.advance(Time::max(), events);
    if (events.size() == seen) {
      return events;
    }
  }
}

inline std::map<std::uint64_t, Outcome> outcomes(const std::vector<NetworkEvent>& events) {
  std::map<std::uint64_t, Outcome> result;
  for (const NetworkEvent& event : events) {
    Outcome& outcome = result[event.tag];
    (event.kind == NetworkEvent::Kind::kSent ? outcome.sent : outcome.delivered) = event.when;
  }
  return result;
}

}  // namespace lockstep::testing
