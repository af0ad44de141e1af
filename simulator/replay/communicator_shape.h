#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/collectives/schedule.h"
#include "simulator/network/flow/max_min.h"

namespace lockstep {

struct StepFold;

/// What decides how the collectives of a folded communicator run, with nothing that tells it from
/// other communicators of its kind: constraints, slots and places are numbered from 0.
/// Communicators of equal shapes that are entered in the same way, and share their constraints with
/// no other that is active, do the same.
struct CommunicatorShape {
  struct Slot {
    double bits = 0;                               ///< wire bits of a transfer
    Time latency, start_latency, forward_latency;  ///< as FlowGraph::Slot
    std::int32_t count = 0;                        ///< transfers
    std::int32_t source = -1, destination = -1;    ///< places; -1: not a rank
    std::int32_t leave = 0, reach = 0;             ///< slots of this kind at one rank
  };
  std::vector<double> capacity;
  std::vector<Slot> slots;
  bool has_switches = false;                   ///< some slots have no rank as their source
  std::vector<std::int32_t> term_begin = {0};  ///< CSR, slots + 1
  std::vector<MaxMin::Term> term;
  std::vector<std::int32_t> wait_begin = {0};  ///< CSR, slots + 1
  std::vector<SlotWait> wait;
  std::vector<std::int64_t> shares;  ///< of each place: transfers that leave or reach a rank there
  // Which slots wait for a slot, and which leave a place: CSR.
  std::vector<std::int32_t> waiter_begin, waiter, from_begin, from;

  std::span<const MaxMin::Term> terms(std::size_t slot) const {
    return row(term_begin, term, slot);
  }
  std::span<const SlotWait> waits(std::size_t slot) const { return row(wait_begin, wait, slot); }
  std::span<const std::int32_t> waiters(std::size_t slot) const {
    return row(waiter_begin, waiter, slot);
  }
  std::span<const std::int32_t> slots_from(std::size_t place) const {
    return row(from_begin, from, place);
  }
  /// All of it in numbers: equal shapes have equal ones.
  std::vector<std::int64_t> key() const;

 private:
  template <class T>
  static std::span<const T> row(const std::vector<std::int32_t>& begin, const std::vector<T>& of,
                                std::size_t i) {
    return std::span(of).subspan(static_cast<std::size_t>(begin[i]),
                                 static_cast<std::size_t>(begin[i + 1] - begin[i]));
  }
};

/// A communicator of a fold.
struct ShapedCommunicator {
  CommunicatorShape shape;
  std::vector<std::int64_t> key;          ///< the shape's
  std::vector<std::int32_t> constraints;  ///< of the fold, by number in the shape
};

/// All of a fold's, in their order. O(slots and their terms).
std::vector<ShapedCommunicator> shapes_of(const StepFold& fold);

}  // namespace lockstep
