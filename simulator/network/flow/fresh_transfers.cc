#include "simulator/network/flow/fresh_transfers.h"

#include "base/error.h"

namespace lockstep {

FreshTransfers::FreshTransfers(PathFinder& paths, FluidNetwork& network, Bytes full_packet)
    : paths_(paths),
      network_(network),
      pairs_(paths, full_packet),
      earlier_(network.rates().constraint_count()) {
  network_.tell_emptied(true);
}

void FreshTransfers::start(ConnectionId id, Bytes bytes, Time when, std::uint64_t tag) {
  const std::int32_t pair_number = pairs_.pair_of(id);
  FreshPairs::Pair& pair = pairs_[pair_number];
  lane_of_.resize(pairs_.connections(), -1);
  std::int32_t& lane = lane_of_[id.index()];
  const bool is_new = lane < 0 || lanes_[at(lane)].connection != id.value;
  if (is_new) {
    lane = lane_for(pair);
    lanes_[at(lane)].connection = id.value;
    lanes_[at(lane)].pair = pair_number;
  }
  const bool lays = pair.draws && (is_new || pairs_.used(id));
  const std::uint16_t port = pairs_.next_port(id);
  if (lays) {
    lay(lane, pairs_.path(pair, port));
  }
  const Bytes wire = paths_.wire_bytes(bytes);
  network_.start(ConnectionId(lane), static_cast<double>(wire.count()) * 8,
                 pairs_.latency(pair.draws ? lanes_[at(lane)].way : pair.way, wire), when, tag);
}

/// A lane that is free. Those of pairs that draw are laid anew.
std::int32_t FreshTransfers::lane_for(FreshPairs::Pair& pair) {
  std::int32_t& free = pairs_.free_lane(pair);
  if (free >= 0) {
    const std::int32_t lane = free;
    free = lanes_[at(lane)].next;
    return lane;
  }
  const std::int32_t lane = network_.connect(pair.way.ports).value;
  LOCKSTEP_CHECK(at(lane) == lanes_.size(), "one lane for one");
  lanes_.emplace_back();
  return lane;
}

/// From now on a lane goes this way; flows that are leaving stay on their own.
void FreshTransfers::lay(std::int32_t id, const Path& path) {
  FreshPairs::Way& way = lanes_[at(id)].way;
  const double bits = network_.take_carried_bits(ConnectionId(id));
  for (const MaxMin::Term& port : way.ports) {
    earlier_[port.constraint.index()] += bits;
  }
  way.lay(path);
  network_.reroute(ConnectionId(id), way.ports);
}

void FreshTransfers::recall() {
  for (const std::int32_t id : network_.emptied()) {
    Lane& lane = lanes_[at(id)];
    lane.connection = -1;
    std::int32_t& free = pairs_.free_lane(pairs_[lane.pair]);
    lane.next = free;
    free = id;
  }
  network_.emptied().clear();
}

const FreshPairs::Way& FreshTransfers::way_of(const Lane& lane) const {
  const FreshPairs::Pair& pair = pairs_[lane.pair];
  return pair.draws ? lane.way : pair.way;
}

void FreshTransfers::add_bits(std::vector<double>& bits) const {
  for (std::size_t port = 0; port < earlier_.size(); ++port) {
    bits[port] += earlier_[port];
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const MaxMin::Term& port : way_of(lanes_[i]).ports) {
      bits[port.constraint.index()] += carried;
    }
  }
}

}  // namespace lockstep
