#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/flow/four_ary_heap.h"
#include "simulator/network/flow/max_min.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// Transfers as fluid flows: each drains at its max-min fair rate (MaxMin) over the ports of its
/// route, which it occupies from its start until its last bit has left the source:
///
///     sent      = the moment at which the integral of the rate reaches W (PathFinder::wire_bytes)
///     delivered = sent + propagation + pipeline [+ ack]                (PathFinder::latency)
///
/// Completions are rounded up to the picosecond. Rates change only when a flow starts or ends; all
/// changes of one time stamp go into one solve. What a flow has left is kept as a double since the
/// last change of its rate, never rounded to the clock, so long flows do not drift.
///
/// What it leaves out: queues, loss and retransmission (link error rates are ignored), congestion
/// control, PFC; see docs/models.md. ACKs take no bandwidth.
///
/// Complexity: a start or completion costs its hops, a heap operation, and the solve of its
/// connected component. Memory: about 120 B a live or future flow and 28 B a hop. No allocation per
/// flow once the arrays have grown to the largest number of flows at one time.
///
/// ERRORS: those of PathFinder at start(), sizes below 0, a flow that cannot end within the clock's
/// 106 days. Keeps a reference to the topology.
class FlowEngine final : public NetworkEngine {
 public:
  explicit FlowEngine(const Topology& topology, const FlowOptions& options = {});

  Time now() const override { return now_; }
  void start(const FlowSpec& flow) override;
  Time advance(Time limit, std::vector<NetworkEvent>& events) override;
  std::vector<PortUse> port_use() const override;

  /// Flows that have not been sent completely, future ones included.
  std::size_t live_flows() const { return live_; }
  /// The present rates, for checks and tests.
  const MaxMin& rates() const { return rates_; }

 private:
  enum class State : std::uint8_t { kNone, kFuture, kDraining };
  /// Indexed by the flow's variable.
  struct Flow {
    std::uint64_t order = 0;  ///< of start()
    std::uint64_t tag = 0;
    Time latency;
    double wire_bits = 0;
    double left_bits = 0;  ///< at `since`
    double rate = 0;       ///< bits per second since then
    Time since;
    Time end;                   ///< at this rate
    Time queued;                ///< when finishes_ will look at it; not after `end`
    std::uint32_t version = 0;  ///< of that entry
    State state = State::kNone;
  };
  struct Start {
    Time when;
    std::uint64_t order;
    VariableId flow;
    friend auto operator<=>(const Start&, const Start&) = default;
  };
  /// Valid while its version is the flow's.
  struct Finish {
    Time when;
    std::int32_t flow;
    std::uint32_t version;
    friend auto operator<=>(const Finish&, const Finish&) = default;
  };
  struct Delivery {
    Time when;
    std::uint64_t order;
    std::uint64_t tag;
    friend auto operator<=>(const Delivery&, const Delivery&) = default;
  };
  struct Ordered {
    std::uint64_t order;
    NetworkEvent event;
  };

  void update_rates();
  void drop_stale_finishes();
  Time next_change();
  void process_now();
  void begin(VariableId id);
  void finish(VariableId id);
  double drained_bits(const Flow& flow) const;
  void reschedule(VariableId id);

  PathFinder paths_;
  MaxMin rates_;
  std::vector<Flow> flows_;
  FourAryHeap<Start> starts_;
  FourAryHeap<Finish> finishes_;
  FourAryHeap<Delivery> deliveries_;
  std::vector<Ordered> happened_;
  std::vector<double> sent_bits_;  // per port, of finished flows
  Time now_;
  std::uint64_t next_order_ = 0;
  std::size_t live_ = 0, draining_ = 0;
};

}  // namespace lockstep
