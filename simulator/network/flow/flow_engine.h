#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/network/flow/binding_ports.h"
#include "simulator/network/flow/congestion_law.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/fresh_transfers.h"
#include "simulator/network/flow/link_faults.h"
#include "simulator/network/flow/message_transfers.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// Transfers as fluid flows over the routed ports of a topology (FluidNetwork has the law):
///
///     bits     8 W, the wire bytes, headers included             (PathFinder::wire_bytes)
///     latency  propagation + pipeline [+ ack]                    (PathFinder::latency)
///
/// Ports that cannot bind take no part (BindingPorts). Where new connections fill one, it counts
/// from then on.
///
/// Links may fail in mid-run (LinkFault): a flow whose way crosses a link that is down keeps what
/// it has left; when connections learn of it, all ways are found anew, O(connections). What has
/// been sent arrives.
///
/// After meet_by_packets() MessageTransfers has another law: transfers take turns by packets at
/// their sender, and a queue lies between it and the rest of their way.
///
/// What it leaves out: queues, loss and retransmission (link error rates are ignored), congestion
/// control, PFC; see docs/models.md. ACKs take no bandwidth.
///
/// Complexity: connect() costs a route, a start what FluidNetwork says. Memory: FluidNetwork's and
/// 16 B a hop of a connection.
///
/// ERRORS: those of PathFinder at connect(), sizes below 0, a flow that cannot end within the
/// clock's 106 days. Keeps a reference to the topology.
class FlowEngine final : public NetworkEngine {
 public:
  explicit FlowEngine(const Topology& topology, const FlowOptions& options = {});

  /// Every solve of rates is checked; see MaxMin::certify().
  void certify() { network_.certify(); }

  Time now() const override { return messages_ ? messages_->now() : network_.now(); }
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) override;
  using NetworkEngine::start;
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override;
  Time advance(Time limit, std::vector<NetworkEvent>& events) override;
  void add_fault(const LinkFault& fault) override;
  std::vector<StuckTransfer> stuck() const override;
  std::vector<PortUse> port_use() const override;
  void meet_by_packets() override;
  bool has_queues() const override { return messages_ != nullptr; }
  bool carries_messages() const override { return messages_ != nullptr; }
  void draw_ports(std::span<const ConnectionId> connections, std::int32_t messages) override {
    messages_->draw_ports(connections, messages);
  }

  /// From now on the port has this bandwidth, in bits per second. Routes stay as they are.
  /// PRECONDITION: > 0.
  void set_capacity(PortId port, double bits_per_second);
  void scale_capacity(PortId port, double share) override {
    set_capacity(port, paths_.capacity(port) * share);
  }

  /// Flows that have not been sent completely, future ones included.
  std::size_t live_flows() const { return messages_ ? messages_->live() : network_.live_flows(); }
  /// The present rates, for checks and tests: port p is constraint p, connections are variables
  /// (but for those of FreshTransfers).
  /// Ports that cannot bind list no users.
  const MaxMin& rates() const { return network_.rates(); }

 private:
  struct Connection {
    NodeId source, destination;
    std::int32_t channel = 0;
    std::int32_t first_hop = 0, hops = 0;
    Time base;       ///< propagation and ack
    Time pipeline;   ///< of a full packet
    Bytes wire{-1};  ///< of the last flow
    Time latency;    ///< for that
    std::uint16_t source_port = 0;
    bool draws = false;  ///< whether each transfer draws its way anew
    bool used = false;
  };
  struct UsedPort {
    std::int32_t port;
    double share;
  };
  void lay_path(std::int32_t connection, const Path& path);
  bool binds(const Path& path, std::size_t hop, std::int32_t connection);
  void bind(ConstraintId port);
  void change_links();
  void find_ways();
  void move(std::int32_t connection, const Path& path);
  /// The first link of its way that is down; invalid if none is.
  LinkId broken(const Connection& connection) const;
  void keep_if_broken(std::int32_t connection);
  Time latency(const Connection& connection, Bytes wire);
  std::span<const UsedPort> hops_of(const Connection& connection) const;
  std::vector<double> bits() const;
  void note_busy(std::size_t port);

  const Topology& topology_;
  PathFinder paths_;
  std::uint64_t seed_;
  bool fresh_ports_;
  bool moves_;  // connections may come to take other ways
  Bytes full_packet_;
  FluidNetwork network_;
  BindingPorts ports_;
  std::vector<std::vector<std::int32_t>> spared_;  // per port: connections that it does not limit
  std::vector<Connection> connections_;
  std::vector<UsedPort> hops_;
  std::vector<double> earlier_bits_;  // per port, over paths that connections have left
  struct Changed {
    double bits = 0;  ///< up to the last change of the port's capacity
    Time busy;        ///< with those
  };
  std::vector<Changed> changed_;     // per port; empty where none has changed
  std::vector<double> bits_by_now_;  // per port, at bits_at_: many change at one moment
  Time bits_at_ = Time::max();
  std::vector<MaxMin::Term> terms_;
  bool has_windows_;
  std::unique_ptr<CongestionLaw> law_;          // with a transport that has one
  std::vector<WindowLimit> windows_;            // per connection, with a transport
  std::unique_ptr<LinkFaults> faults_;          // where links fail
  std::unique_ptr<FreshTransfers> fresh_;       // then all connections are its own,
  std::unique_ptr<MessageTransfers> messages_;  // or all are of this
};

}  // namespace lockstep
