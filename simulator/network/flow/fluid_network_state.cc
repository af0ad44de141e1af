// The state of a FluidNetwork: what is saved, compared and moved in time to skip what repeats.

#include <algorithm>
#include <bit>

#include "simulator/network/flow/fluid_network.h"

namespace lockstep {

/// Calls f(value) for the numbers that make up the state of the connections, until it returns
/// false.
template <class F>
bool FluidNetwork::each_value(F f) const {
  for (const Connection& connection : connections_) {
    if (!f(static_cast<std::int64_t>(connection.state))) {
      return false;
    }
    if (connection.state == State::kIdle) {
      continue;
    }
    const auto index = static_cast<std::size_t>(&connection - connections_.data());
    if (connection.state == State::kFuture && !f((connection.end - now_).count_ps())) {
      return false;
    }
    if (connection.state == State::kDraining && index < limits_.size() &&
        !f(std::bit_cast<std::int64_t>(rates_.bound(VariableId(index))))) {
      return false;
    }
    if (connection.state != State::kFuture) {
      const Wide left = left_parts(index);
      const std::int64_t rate = is_bundled(ConnectionId(index))
                                    ? bundles_[static_cast<std::size_t>(bundle_[index])].rate
                                    : connection.rate;
      if (!(f(static_cast<std::int64_t>(left >> 64)) && f(static_cast<std::int64_t>(left)) &&
            f(rate))) {
        return false;
      }
    }
    for (std::int32_t post = connection.first_post; post >= 0;
         post = posts_[static_cast<std::size_t>(post)].next) {
      if (!f((posts_[static_cast<std::size_t>(post)].when - now_).count_ps())) {
        return false;
      }
    }
  }
  return true;
}

void FluidNetwork::list_deliveries(std::vector<std::pair<Time, std::uint64_t>>& list) const {
  list.clear();
  deliveries_.for_each([&](Time when, std::uint64_t tag) { list.emplace_back(when - now_, tag); });
  std::ranges::sort(list);
}

void FluidNetwork::save_state(Snapshot& snapshot) const {
  snapshot.values.clear();
  each_value([&](std::int64_t value) {
    snapshot.values.push_back(value);
    return true;
  });
  list_deliveries(snapshot.deliveries);
}

bool FluidNetwork::same_state(const Snapshot& snapshot) {
  std::size_t next = 0;
  const bool same = each_value([&](std::int64_t value) {
    return next < snapshot.values.size() && snapshot.values[next++] == value;
  });
  if (!same || next != snapshot.values.size() || deliveries_.size() != snapshot.deliveries.size()) {
    return false;
  }
  list_deliveries(listed_);
  return listed_ == snapshot.deliveries;
}

void FluidNetwork::shift(Time by) {
  now_ += by;
  for (Connection& connection : connections_) {
    if (connection.state == State::kIdle) {
      continue;
    }
    connection.since += by;
    connection.end += connection.end < Time::max() ? by : Time();
    connection.queued += connection.queued < Time::max() ? by : Time();
    for (std::int32_t post = connection.first_post; post >= 0;
         post = posts_[static_cast<std::size_t>(post)].next) {
      posts_[static_cast<std::size_t>(post)].when += by;
    }
  }
  for (Bundle& bundle : bundles_) {
    bundle.since += by;
    bundle.end += bundle.end < Time::max() ? by : Time();
    bundle.queued += bundle.queued < Time::max() ? by : Time();
  }
  starts_.shift(by);
  finishes_.shift(by);
  deliveries_.shift(by);
}

}  // namespace lockstep
