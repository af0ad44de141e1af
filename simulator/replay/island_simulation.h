#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/replay/communicator_shape.h"

namespace lockstep {

/// The collectives of some folded communicators on a fluid network of their own: who has entered,
/// which transfers may start, who has finished. It may begin at any time, and times count from
/// there, so the same situation goes on in the same way.
class IslandSimulation {
 public:
  /// A place of a run has sent and received all that it has to.
  struct Finish {
    std::int32_t run, place;
  };

  /// Begins anew at `now`, without runs. PRECONDITION: idle().
  void begin(Time now) {
    offset_ = network_.now() - now;
    runs_.clear();
  }

  /// Adds a communicator; `constraints` names its constraints, so that communicators share those of
  /// equal names. `shape` must outlive this. Returns its number.
  std::int32_t add(const CommunicatorShape& shape, std::span<const std::int32_t> constraints);
  /// Other names for the constraints of the only communicator, which was added with 0, 1, ….
  void rename(std::span<const std::int32_t> constraints);
  void set_capacity(std::int32_t constraint, double capacity);

  /// A further collective on a communicator, numbered from 0 in order of opening.
  std::int32_t open(std::int32_t communicator);
  std::int32_t runs() const { return static_cast<std::int32_t>(runs_.size()); }
  /// A class of its ranks reaches it at `now`. What else there is at that moment may come before or
  /// after. PRECONDITION: nothing is to come before.
  void enter(std::int32_t run, std::int32_t place, Time now);
  /// Tells a finish at the next advance().
  void hold(const Finish& finish) { finished_.push_back(finish); }
  /// When something changes next; Time::max() where nothing is to come.
  Time next();
  /// Lets everything happen up to and with `to`.
  void advance(Time to, std::vector<Finish>& finished);
  /// Nothing is on the wire or on its way there.
  bool idle() const { return network_.idle(); }

  /// Takes over what a communicator of another simulation, which stands at the same time, has under
  /// way. This one's slot s stands for slots that did what the other's slot slot_of[s] did, and its
  /// place p for ranks of place_of[p] (empty: the same numbers). Returns the new number of each of
  /// the other's runs, -1 for those of other communicators or none that is open.
  std::vector<std::int32_t> adopt(std::int32_t communicator, const IslandSimulation& from,
                                  std::int32_t theirs, std::span<const std::int32_t> slot_of,
                                  std::span<const std::int32_t> place_of);

 private:
  struct SlotState {
    std::int32_t started = 0, sent = 0, delivered = 0;  // transfers
  };
  struct Run {
    std::int32_t communicator = -1;
    std::int32_t unfinished = 0;     // places
    std::vector<std::int64_t> left;  // per place: transfers
    std::vector<char> entered;       // per place
    std::vector<SlotState> slots;
  };
  struct Communicator {
    const CommunicatorShape* shape;
    std::int32_t first_connection;
  };

  const CommunicatorShape& shape_of(const Run& run) const {
    return *communicators_[static_cast<std::size_t>(run.communicator)].shape;
  }
  void start_ready(std::int32_t run, std::int32_t slot);
  void share_done(std::int32_t run, std::int32_t place, std::int32_t count);
  void handle(const NetworkEvent& event);
  void handle_until(Time to);
  static bool over(const IslandSimulation& of, const Run& run);

  FluidNetwork network_;
  Time offset_;  // of the network's clock from the step's
  std::vector<Communicator> communicators_;
  std::unordered_map<std::int32_t, ConstraintId> constraint_;  // by name; never iterated
  std::vector<Run> runs_;
  std::vector<Finish> finished_;
  std::vector<NetworkEvent> events_;
};

}  // namespace lockstep
