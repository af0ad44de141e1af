#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/replay/communicator_shape.h"
#include "simulator/replay/lone_times.h"

namespace lockstep {

struct Standing;

/// The collectives of some folded communicators on a fluid network of their own: who has entered,
/// which transfers may start, who has finished. It may begin at any time, and times count from
/// there, so the same situation goes on in the same way.
///
/// Collectives of communicators that have LoneTimes are told from those: when all places have
/// entered all ends are known at once. That holds as long as nothing else is on a constraint while
/// a slot is at work on it: from its place's entry to its last transfer, but for times when all
/// rests until another place enters. Should something begin there, or still be there when what
/// rested goes on, the collective goes on by events from where it stands; it is told again if it
/// rests when its last place enters and nobody else is there.
class IslandSimulation {
 public:
  /// A place of a run has sent and received all that it has to.
  struct Finish {
    std::int32_t run, place;
  };

  /// Begins anew at `now`, without runs. PRECONDITION: idle().
  void begin(Time now);

  /// Adds a communicator; `constraints` names its constraints, so that communicators share those of
  /// equal names. `shape` must outlive this. Returns its number.
  /// `lone`, which may be nullptr and must outlive this: how collectives alone are told.
  std::int32_t add(const CommunicatorShape& shape, std::span<const std::int32_t> constraints,
                   const LoneTimes* lone = nullptr);
  /// Collectives that are being told go on by events.
  void simulate_all();
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
  /// When something changes next; Time::max() where nothing is to come. What some places of a told
  /// collective can do without the others may be over before.
  Time next();
  /// Lets everything happen up to and with `to`.
  void advance(Time to, std::vector<Finish>& finished);
  /// Nothing is on the wire or on its way there. PRECONDITION: no collective is being told.
  bool idle() const { return network_.idle(); }

  /// Nothing is under way, told or on the wire.
  bool rests() const;
  /// The memory of collectives that are over is that of further ones; their numbers are appended.
  /// PRECONDITION: who has finished has been told. O(communicators + collectives that are open or
  /// were).
  void forget_over(std::vector<std::int32_t>& over);
  /// How these open runs stand, in numbers without times of what moves; false where something is
  /// under way, which they would not tell.
  bool save(std::span<const std::int32_t> runs, Standing& standing) const;

  /// A run that is open, by its numbers in two simulations.
  struct SameRun {
    std::int32_t theirs, mine;
  };
  /// Takes over what a communicator of another simulation, which stands at the same time, has under
  /// way. This one's slot s stands for slots that did what the other's slot slot_of[s] did, and its
  /// place p for ranks of place_of[p] (empty: the same numbers). Returns the communicator's open
  /// runs in their order. What is being told goes on so. PRECONDITION: with numbers given, the
  /// other tells nothing. O(its runs and slots + what is under way there).
  std::vector<SameRun> adopt(std::int32_t communicator, const IslandSimulation& from,
                             std::int32_t theirs, std::span<const std::int32_t> slot_of,
                             std::span<const std::int32_t> place_of);

 private:
  /// A collective that is told, from where Run says it stood. Times are the step's.
  struct Told {
    std::vector<Time> entry;     // per place; max: not yet, or before
    std::int32_t to_enter = 0;   // places
    Time rest;                   // until the next one enters: nothing is under way from then on
    LoneTimes::Times times;      // when all have entered
    std::vector<char> finished;  // per place: that has been told
    bool known() const { return to_enter == 0; }
  };
  struct SlotState {
    std::int32_t started = 0, sent = 0, delivered = 0;  // transfers
  };
  struct Run {
    std::int32_t communicator = -1;
    std::int32_t unfinished = 0;     // places
    std::vector<std::int64_t> left;  // per place: transfers
    std::vector<char> entered;       // per place
    std::vector<SlotState> slots;
    std::unique_ptr<Told> told;  // then what stands above is how it was before, but `unfinished`
  };
  struct Communicator {
    const CommunicatorShape* shape;
    std::int32_t first_connection;
    std::vector<ConstraintId> constraint;  // by number in the shape
    const LoneTimes* lone;
    std::vector<std::int32_t> runs;  // those that are over may be missing
  };
  /// The slot of a told collective that was the last to enter a constraint.
  struct Holder {
    std::int32_t run = -1, slot = -1;
  };
  struct ToldFinish {
    Time when;
    std::int32_t run, place;
    bool operator>(const ToldFinish& other) const {
      return std::tie(when, run, place) > std::tie(other.when, other.run, other.place);
    }
  };

  const CommunicatorShape& shape_of(const Run& run) const {
    return *communicators_[static_cast<std::size_t>(run.communicator)].shape;
  }
  std::int32_t add_run(std::int32_t communicator);
  void retire(Run& run);
  std::unique_ptr<Told> new_told(std::size_t places);
  bool enter_told(std::int32_t run, std::int32_t place, Time now);
  bool tell_again(std::int32_t run, std::int32_t place, Time now);
  bool know(std::int32_t run);
  bool at_work(const Holder& holder, Time now) const;
  bool is_taken(const Communicator& communicator, std::size_t slot, Time now) const;
  void hold_constraints(std::int32_t run, std::int32_t slot);
  void simulate_told(std::int32_t run);
  void put_on_network(std::int32_t run, std::int32_t slot, const LoneTimes::SlotState& state);
  void take_told(std::int32_t run);
  void make_way(const Run& run, std::int32_t slot);
  void count_flows(const Run& run, std::int32_t slot, std::int32_t by);
  Time now() const { return network_.now() - offset_; }
  void start_ready(std::int32_t run, std::int32_t slot);
  void share_done(std::int32_t run, std::int32_t place, std::int32_t count);
  void handle(const NetworkEvent& event);
  void handle_until(Time to);
  static std::uint64_t tag_of(std::int32_t run, std::int32_t slot) {
    return static_cast<std::uint64_t>(run) << 32 | static_cast<std::uint32_t>(slot);
  }
  static std::int32_t slot_of_tag(std::uint64_t tag) {
    return static_cast<std::int32_t>(tag & 0xFFFFFFFFU);
  }
  void begin_to_tell();
  bool is_open(const ToldFinish& finish) const {
    return runs_[static_cast<std::size_t>(finish.run)].told != nullptr;
  }
  static bool over(const IslandSimulation& of, const Run& run);

  FluidNetwork network_;
  Time offset_;  // of the network's clock from the step's
  std::vector<Communicator> communicators_;
  std::unordered_map<std::int32_t, ConstraintId> constraint_;  // by name; never iterated
  std::vector<Run> runs_;
  std::vector<Finish> finished_;
  std::vector<NetworkEvent> events_;
  // Memory of runs that are over, for those to come.
  std::vector<Run> spare_;
  std::vector<std::unique_ptr<Told>> spare_told_;
  // Where collectives are told: of each constraint, and what ends when.
  bool tells_ = false;
  std::vector<std::int32_t> flows_;  // on the network, not sent
  std::vector<Holder> holder_;
  std::int32_t waiting_ = 0;  // told collectives that some places have entered, not all
  Time rest_;                 // by then those rest
  std::priority_queue<ToldFinish, std::vector<ToldFinish>, std::greater<>> told_;
  // Scratch.
  std::vector<std::int32_t> going_on_, done_;
  std::vector<Time> entry_;
};

}  // namespace lockstep
