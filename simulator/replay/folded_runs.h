#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/communication.h"
#include "simulator/replay/step_fold.h"
#include "topologies/topology.h"

namespace lockstep {

/// The fluid network of a folded step: connection s is slot s of the fold. port_use() is that of
/// the whole fabric.
class FoldedNetwork final : public NetworkEngine {
 public:
  FoldedNetwork(const StepFold& fold, const Topology& topology);

  Time now() const override { return network_.now(); }
  /// The connections exist already. ERRORS: InternalError.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) override;
  /// `bytes` does not matter: a slot's transfers have one size.
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override;
  Time advance(Time limit, std::vector<NetworkEvent>& events) override {
    return network_.advance(limit, events);
  }
  std::vector<PortUse> port_use() const override;

 private:
  const StepFold& fold_;
  const Topology& topology_;
  FluidNetwork network_;
};

/// Communication among the representatives of a folded step's classes. Ranks are representatives.
class FoldedRuns final : public Communication {
 public:
  using Finished = std::function<void(std::int32_t rank, std::int32_t op)>;

  FoldedRuns(const RankPrograms& work, const StepFold& fold, NetworkEngine& network,
             Finished finished);

  void enter(std::int32_t rank, std::int32_t op, Time now) override;
  void handle(const NetworkEvent& event, Time now) override;
  /// Of all ranks, not only of the representatives.
  std::int64_t transfers() const override { return transfers_; }
  std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const override;

 private:
  struct SlotState {
    std::int32_t started = 0, delivered = 0;  // transfers
  };
  struct Run {
    std::int32_t communicator = -1;
    std::int32_t sequence = 0;
    std::vector<std::int32_t> op;      // per class of the communicator; -1 before it has entered
    std::vector<std::int64_t> shares;  // per class: what is left
    std::vector<SlotState> slots;      // per slot of the communicator
    std::int32_t unfinished = 0;       // classes
  };
  /// A slot of a communicator by its place in the communicator's list.
  struct LocalSlot {
    std::int32_t source = -1, destination = -1;  // places in the communicator's list of classes
    std::vector<SlotWait> waits;
    std::vector<std::int32_t> waiters;
  };

  std::int32_t place_of(std::int32_t communicator, std::int32_t of_class) const;
  void start_ready(std::int32_t run, std::int32_t slot, Time now);
  void share_done(std::int32_t run, std::int32_t place, std::int32_t count);

  const RankPrograms& work_;
  const StepFold& fold_;
  NetworkEngine& network_;
  Finished finished_;
  std::vector<std::vector<LocalSlot>> local_;  // per communicator
  std::vector<Run> runs_;
  std::vector<std::int32_t> free_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> open_;  // communicator, sequence
  std::int64_t transfers_ = 0;
};

}  // namespace lockstep
