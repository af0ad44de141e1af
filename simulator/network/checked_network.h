#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/network/network_engine.h"
#include "topologies/topology.h"

namespace lockstep {

/// An engine under watch: passes every call on and holds the answers against what must be true of
/// any network. For --paranoid, and for tests of engines.
///
///   time         now() and the events never go back; an event's time is now()
///   transfers    each that starts is sent once and delivered once, in that order, not before its
///                start; nothing else is (those of one tag in the order of their starts)
///   speed        a transfer does not leave its source, or come to its destination, faster than all
///                ports of that node together could carry it (not where ports change)
///   bytes        once all is delivered (port_use()), the ports of every node have carried at least
///                what transfers brought to it and took from it: bytes sent = bytes received
///
/// Complexity: O(1) a call and event; 70 B a transfer under way, 32 B a node.
/// ERRORS: InternalError (exit code 70) that names what is broken.
class CheckedNetwork final : public NetworkEngine {
 public:
  CheckedNetwork(std::unique_ptr<NetworkEngine> engine, const Topology& topology);

  Time now() const override { return engine_->now(); }
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) override;
  ConnectionId connect_in_class(NodeId source, NodeId destination, std::int32_t channel,
                                std::int32_t traffic_class) override;
  using NetworkEngine::start;
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override;
  Time advance(Time limit, std::vector<NetworkEvent>& events) override;
  void scale_capacity(PortId port, double share) override;
  bool plan_change(Time when, PortId port, double share, double loss) override;
  void add_fault(const LinkFault& fault) override { engine_->add_fault(fault); }
  std::vector<StuckTransfer> stuck() const override { return engine_->stuck(); }
  /// PRECONDITION: all transfers are delivered.
  std::vector<PortUse> port_use() const override;
  std::optional<PacketStatistics> packet_statistics() const override {
    return engine_->packet_statistics();
  }
  void meet_by_packets() override { engine_->meet_by_packets(); }
  bool has_queues() const override { return engine_->has_queues(); }
  bool carries_messages() const override { return engine_->carries_messages(); }
  void draw_ports(std::span<const ConnectionId> connections, std::int32_t messages) override {
    engine_->draw_ports(connections, messages);
  }
  bool runs_by_chance() const override { return engine_->runs_by_chance(); }

 private:
  struct Ends {
    NodeId source, destination;
  };
  struct Transfer {
    Bytes bytes;
    Time start, sent;
    std::int32_t connection = 0;
    bool is_sent = false;
  };
  struct Load {
    double rate_out = 0, rate_in = 0;  ///< of all ports, bits per second
    Bytes sent, received;              ///< by transfers that are delivered
  };
  void check(const NetworkEvent& event);
  Time least_time(const Transfer& transfer) const;

  std::unique_ptr<NetworkEngine> engine_;
  const Topology& topology_;
  std::vector<Ends> connections_;
  std::vector<Load> loads_;  // per node
  // By tag, in order of their starts: those of one tag are told apart by that. Never iterated.
  std::unordered_map<std::uint64_t, std::deque<Transfer>> under_way_;
  Time last_;
  bool fixed_rates_ = true;
};

}  // namespace lockstep
