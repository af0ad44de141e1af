#include "simulator/network/flow/fabric_legs.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {
namespace {

std::vector<double> capacities(const MaxMin& rates) {
  std::vector<double> capacity;
  for (std::size_t port = 0; port < rates.constraint_count(); ++port) {
    capacity.push_back(rates.capacity(ConstraintId(port)));
  }
  return capacity;
}

}  // namespace

FabricLegs::FabricLegs(FluidNetwork& network, std::int64_t few)
    : network_(network),
      few_(std::in_place, capacities(network.rates()), few),
      earlier_(network.rates().constraint_count()) {
  network_.deliver(false);
}

void FabricLegs::start(std::int32_t transfer, std::span<const MaxMin::Term> ports, double bits,
                       double packet, Time now) {
  const SharedLegs::Leg leg{transfer, bits, packet};
  const bool whole =
      std::ranges::all_of(ports, [](const MaxMin::Term& term) { return term.coefficient == 1; });
  if (few_ && (!whole || ports.size() > SharedLegs::kHops)) {
    crowd(now);
  }
  if (!few_) {
    start_in_network(leg, ports, now);
    return;
  }
  ports_.clear();
  for (const MaxMin::Term& term : ports) {
    ports_.push_back(term.constraint.value);
  }
  few_->start(leg, ports_, now);
}

/// From now on all is in the network.
void FabricLegs::crowd(Time now) {
  std::vector<MaxMin::Term> ports;
  few_->for_each([&](std::int32_t number) {
    SharedLegs::Leg leg = few_->leg(number);
    const double left = few_->left(number, now);
    ports.clear();
    for (const std::int32_t port : few_->ports(number)) {
      earlier_[at(port)] += leg.bits - left;
      ports.push_back({ConstraintId(port), 1});
    }
    leg.bits = left;
    start_in_network(leg, ports, now);
  });
  few_.reset();
}

void FabricLegs::start_in_network(const SharedLegs::Leg& leg, std::span<const MaxMin::Term> ports,
                                  Time now) {
  std::int32_t id = 0;
  if (free_.empty()) {
    id = network_.connect(ports).value;
    LOCKSTEP_CHECK(at(id) == lanes_.size(), "one lane for one");
    lanes_.emplace_back().ports.assign(ports.begin(), ports.end());
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Lane& lane = lanes_[at(id)];
  lane.transfer = leg.transfer;
  lane.packet = leg.packet;
  const auto is_same = [](const MaxMin::Term& a, const MaxMin::Term& b) {
    return a.constraint == b.constraint && a.coefficient == b.coefficient;
  };
  if (!std::ranges::equal(ports, lane.ports, is_same)) {
    const double bits = network_.take_carried_bits(ConnectionId(id));
    for (const MaxMin::Term& port : lane.ports) {
      earlier_[port.constraint.index()] += bits * port.coefficient;
    }
    lane.ports.assign(ports.begin(), ports.end());
    network_.reroute(ConnectionId(id), ports);
  }
  network_.start(ConnectionId(id), leg.bits, Time(), now, static_cast<std::uint64_t>(id));
  network_next_ = now;
}

Time FabricLegs::next_settled(Time now) {
  if (few_ && !few_->settle(now)) {
    crowd(now);
  }
  return few_ ? few_->next() : network_next_;
}

void FabricLegs::note_bits(const SharedLegs::Leg& leg, std::span<const std::int32_t> ports) {
  for (const std::int32_t port : ports) {
    earlier_[at(port)] += leg.bits;
  }
}

void FabricLegs::set_capacity(ConstraintId port, double capacity, Time now) {
  if (few_) {
    few_->set_capacity(port.value, capacity);
  } else {
    network_.advance(now, heard_);
    LOCKSTEP_CHECK(heard_.empty(), "what happens now has happened");
  }
  network_.set_capacity(port, capacity);
  network_next_ = few_ ? Time::max() : network_.next_change();
}

FabricLegs::Others FabricLegs::others(ConstraintId port) const {
  double used = 0, packets = 0;  // packets: the same, each by how long its packets are
  if (few_) {
    for (const std::int32_t user : few_->users(port.value)) {
      used += few_->rate(user);
      packets += few_->rate(user) * few_->leg(user).packet;
    }
  } else {
    const MaxMin& rates = network_.rates();
    for (const MaxMin::User& user : rates.users(port)) {
      const Lane& lane = lanes_[at(user.variable)];
      const double rate = lane.transfer < 0 ? 0 : rates.rate(VariableId(user.variable));
      used += rate;
      packets += rate * lane.packet;
    }
  }
  return used > 0 ? Others{used / network_.rates().capacity(port), packets / used} : Others{};
}

void FabricLegs::add_bits(Time now, std::vector<double>& bits) const {
  for (std::size_t port = 0; port < earlier_.size(); ++port) {
    bits[port] += earlier_[port];
  }
  if (few_) {
    few_->for_each([&](std::int32_t number) {
      const double gone = few_->leg(number).bits - few_->left(number, now);
      for (const std::int32_t port : few_->ports(number)) {
        bits[at(port)] += gone;
      }
    });
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const MaxMin::Term& port : lanes_[i].ports) {
      bits[port.constraint.index()] += carried * port.coefficient;
    }
  }
}

}  // namespace lockstep
