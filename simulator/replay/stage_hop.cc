#include "simulator/replay/stage_hop.h"

#include <cstdint>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/network_changes.h"

namespace lockstep {

Time stage_hop(const LayerTable& table, const Parallelism& parallel, const Topology& topology,
               std::span<const NodeId> nodes, const NetworkFactory& factory,
               std::span<const NetworkChange> changes, Time send_latency) {
  const auto bytes = Bytes(static_cast<std::int64_t>(table.pp_comm_bytes));
  if (parallel.pp <= 1 || bytes <= Bytes(0)) {
    return {};
  }
  const std::unique_ptr<NetworkEngine> network = factory();
  const bool announced = announce(*network, changes);
  for (const NetworkChange& change : changes) {
    if (change.when == Time() && !announced) {
      network->scale_capacity(change.port, change.share);
    }
  }
  const auto stage = static_cast<std::size_t>(parallel.gpus / parallel.pp);
  for (std::size_t rank = 0; rank < stage; ++rank) {
    FlowSpec flow;
    flow.source = nodes[rank];
    flow.destination = nodes[rank + stage];
    flow.bytes = bytes;
    flow.start = send_latency;
    flow.tag = rank;
    network->start(flow);
  }
  std::vector<NetworkEvent> events;
  Time last;
  for (;;) {
    events.clear();
    const Time now = network->advance(Time::max(), events);
    if (events.empty()) {
      break;
    }
    last = now;
  }
  for (const StuckTransfer& transfer : network->stuck()) {
    const Link& link = topology.links[transfer.link.index()];
    throw Error(fmt::format("the step hangs: what rank {} of stage 0 sends to stage 1 waits for "
                            "link {}-{}, down since {}",
                            transfer.tag, link.a.value, link.b.value, to_text(transfer.since)))
        .hint("give the fault an end (@10ms-20ms), or a time to reroute");
  }
  return last;
}

}  // namespace lockstep
