#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/give_back.h"
#include "simulator/network/flow/shared_legs.h"

namespace lockstep {

/// The parts of transfers that are over several ports of a fabric, which they share max-min fairly:
/// SharedLegs as long as few meet, from then on a FluidNetwork, whose cost grows less with them.
///
/// Complexity: what these take, and where there is the network O(hops) more a leg. No allocation a
/// leg once the arrays have grown.
class FabricLegs {
 public:
  /// Refers to the network, which has a constraint for each port and nothing else. `few`: as of
  /// SharedLegs.
  explicit FabricLegs(FluidNetwork& network, std::int64_t few = SharedLegs::kMost);
  ~FabricLegs() { network_.deliver(true); }
  FabricLegs(const FabricLegs&) = delete;
  FabricLegs& operator=(const FabricLegs&) = delete;

  /// PRECONDITION: as of SharedLegs::start().
  void start(std::int32_t transfer, std::span<const MaxMin::Term> ports, double bits, double packet,
             Time now);
  /// When take_ended() is to be called; Time::max() where nothing is under way. Not every call
  /// finds a leg that ends. After all else that happens now.
  Time next(Time now) { return few_ && few_->is_settled() ? few_->next() : next_settled(now); }
  /// Calls f(transfer) for those whose legs end now, while those that do not have the rates that
  /// they had until now. PRECONDITION: now is not after next().
  template <class F>
  void take_ended(Time now, F f);
  /// PRECONDITION: next() was asked after all else that happens now.
  void set_capacity(ConstraintId port, double capacity, Time now);
  /// What else is on a port, of legs that have not ended: of its bandwidth, and what the packets of
  /// that are of full ones in the mean.
  struct Others {
    double share = 0, packet = 1;
  };
  Others others(ConstraintId port) const;
  /// Adds what has left over each port to one entry a port.
  void add_bits(Time now, std::vector<double>& bits) const;

 private:
  struct Lane {
    std::int32_t transfer = -1;  ///< -1 where it has ended
    double packet = 1;
    std::vector<MaxMin::Term> ports;
  };
  void start_in_network(const SharedLegs::Leg& leg, std::span<const MaxMin::Term> ports, Time now);
  void note_bits(const SharedLegs::Leg& leg, std::span<const std::int32_t> ports);
  void crowd(Time now);
  Time next_settled(Time now);

  FluidNetwork& network_;
  std::optional<SharedLegs> few_;
  std::vector<double> earlier_;  // bits per port, of legs that are over
  // Where they are not few.
  std::vector<Lane> lanes_;          // connections of the network
  std::vector<std::int32_t> free_;   // lanes
  Time network_next_ = Time::max();  // when something happens in the network, which lags behind
  std::vector<NetworkEvent> heard_;
  std::vector<std::int32_t> ports_, ended_;  // scratch
};

template <class F>
void FabricLegs::take_ended(Time now, F f) {
  if (few_ && few_->next() == now) {
    ended_.clear();
    few_->take_ended(now, ended_);
    for (const std::int32_t number : ended_) {
      note_bits(few_->leg(number), few_->ports(number));
      f(few_->leg(number).transfer);
    }
  }
  while (network_next_ <= now) {
    network_.advance(now, heard_);
    for (const NetworkEvent& event : heard_) {
      const auto lane = static_cast<std::int32_t>(event.tag);
      free_.push_back(lane);
      f(std::exchange(lanes_[event.tag].transfer, -1));
    }
    give_back(heard_);
    network_next_ = network_.next_change();
  }
}

}  // namespace lockstep
