#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "simulator/network/network_engine.h"
#include "simulator/network/packet_engine_options.h"
#include "simulator/network/packet_engine_protocol.h"

namespace lockstep {

/// Every packet of every transfer, by ns-3 in a process of its own (`lockstep-packet`, docs/adr/
/// 0005). Model: ns3-module/doc/fabric.rst. The process runs ahead by PacketOptions::lookahead, so
/// that the pipe is crossed once for a batch of transfers and completions.
///
/// ERRORS: those of the constructor: Error with ExitCode::kMissingPart when there is no
/// lockstep-packet. Any call: what lockstep-packet objects to (an unknown
/// attribute, no route). Memory here: 24 B a completion that waits.
class PacketEngine final : public NetworkEngine {
 public:
  PacketEngine(const Topology& topology, const PacketOptions& options);
  ~PacketEngine() override;

  Time now() const override { return now_; }
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) override;
  ConnectionId connect_in_class(NodeId source, NodeId destination, std::int32_t channel,
                                std::int32_t traffic_class) override;
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override;
  using NetworkEngine::start;
  Time advance(Time limit, std::vector<NetworkEvent>& events) override;
  bool plan_change(Time when, PortId port, double share, double loss) override;
  /// Starts lockstep-packet anew. ERRORS: Error where faults have unequal times to reroute.
  void add_fault(const LinkFault& fault) override;
  std::vector<PortUse> port_use() const override;
  PacketStatistics statistics() const;
  std::optional<PacketStatistics> packet_statistics() const override { return statistics(); }
  bool has_queues() const override { return true; }
  bool runs_by_chance() const override;

 private:
  struct Report;

  void open();
  void run(Time limit);
  const std::string& call(packet::FrameType type, packet::FrameType expected) const;
  const Report& report() const;

  const Topology& topology_;
  PacketOptions options_;
  Time lookahead_;
  mutable std::unique_ptr<ChildProcess> process_;
  mutable std::string message_, answer_;
  std::int32_t connections_ = 0;
  bool changes_ = false;  // have been told
  std::vector<packet::ConnectRecord> connects_;
  std::vector<packet::StartRecord> starts_;
  std::vector<packet::Completion> completions_;
  std::size_t next_ = 0;                    // of completions_
  mutable std::unique_ptr<Report> report_;  // of now, if it was asked for
  Time now_;
  Time reached_;  // all before it has happened
  bool idle_ = true;
};

}  // namespace lockstep
