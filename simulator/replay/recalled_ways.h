#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"
#include "simulator/collectives/schedule.h"
#include "simulator/replay/recall_options.h"
#include "topologies/routing.h"
#include "topologies/topology.h"

namespace lockstep {

/// What the collectives of one communicator do to the network: which ports they cross with how many
/// bytes, and a description in which nothing tells it from communicators of its kind. Two of equal
/// description and schedule that are alone on their ports behave alike.
struct RecalledWays {
  struct Load {
    std::int32_t port;
    std::int64_t bytes;  ///< on the wire, ACKs of the other direction included
  };
  /// By port. What draws its way for each transfer is spread over all that it may take.
  std::vector<Load> loads;
  std::vector<std::int64_t> description;  ///< ports numbered as met: rate, delay and kinds of nodes
  /// All ways are the only shortest ones, or drawn once and for all: it is the same every time.
  bool steady = true;
  Time rest;    ///< so long after the last delivery its ACKs are back
  Time packet;  ///< the transmission of a full packet at its slowest port
};

/// Finds the ways of connections as the packet engine does (the same ECMP draws).
class RecalledWaysFinder {
 public:
  RecalledWaysFinder(const Topology& topology, const RecallOptions& options);

  /// O(slots + slots of a step x hops + transfers of unequal sizes). `node_of` is where a place is.
  /// ERRORS: no route.
  RecalledWays find(const Schedule& schedule,
                    const std::function<NodeId(std::int32_t place)>& node_of);

 private:
  const Topology& topology_;
  RecallOptions options_;
  Router one_way_, all_ways_;
  Route route_, all_;
};

}  // namespace lockstep
