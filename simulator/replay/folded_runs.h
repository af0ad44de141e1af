#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "simulator/network/flow/four_ary_heap.h"
#include "simulator/replay/communication.h"
#include "simulator/replay/communicator_shape.h"
#include "simulator/replay/island_simulation.h"
#include "simulator/replay/session_memo.h"
#include "simulator/replay/session_store.h"
#include "simulator/replay/step_fold.h"
#include "topologies/topology.h"

namespace lockstep {

struct Standing;

/// Communication among the representatives of a folded step's classes, on a fluid network that is
/// cut where nothing crosses it: communicators that are active and share constraints, directly or
/// over others, form an island. Islands do not feel each other, so each has a simulation and a
/// clock of its own; where one with active communicators meets another, they are joined as they
/// stand.
///
/// An island of one communicator is a session. What sessions of equal shape have done is remembered
/// (session_memo.h), and told again where they are entered in the same way: of the thousands of
/// equal collectives of a step few are simulated. Ranks are representatives.
class FoldedRuns final : public Communication {
 public:
  /// `moved`: see OpTiming.
  using Finished = std::function<void(std::int32_t rank, std::int32_t op, Time moved)>;

  FoldedRuns(const RankPrograms& work, const StepFold& fold, SessionStore& sessions,
             Finished finished);
  /// Others on the same fold and with the same sessions, at rest.
  FoldedRuns(const FoldedRuns& like, Finished finished);

  /// For simulations beside another one (replay.cc's stretches): begins anew at `now`.
  /// PRECONDITION: nothing is under way.
  void restart(std::span<const std::int32_t> communicators, Time now);
  /// Takes what these communicators have under way and have done on others of the same fold, which
  /// stand at the same time. PRECONDITION: idle(communicators).
  void take_over(FoldedRuns& from, std::span<const std::int32_t> communicators);
  /// A collective was carried out elsewhere.
  void count(std::int32_t communicator);
  /// Whether nobody is on the ports of these communicators.
  bool idle(std::span<const std::int32_t> communicators) const;
  /// When something was under way last; what is idle has been so since then.
  Time last_change() const { return last_change_; }
  /// Of a rank's operation; see StepFold::communicator_of.
  std::int32_t communicator_of(std::int32_t rank, std::int32_t op) const;
  const SessionKind* kind(std::int32_t communicator) const {
    return communicators_[static_cast<std::size_t>(communicator)].kind;
  }
  /// Of the fold, by number in the shape.
  std::span<const std::int32_t> constraints(std::int32_t communicator) const {
    return known_->constraints[static_cast<std::size_t>(communicator)];
  }
  /// Constraints that a rank may put something on when it has entered. O(slots that leave it).
  std::span<const std::int32_t> reach(std::int32_t communicator, std::int32_t rank);

  /// Whether nothing is on the wire that is simulated, among the communicators of a part.
  bool rests(std::span<const std::int32_t> part_of, std::int32_t part) const;
  /// How these communicators stand: appends a block for each island. standing.h; replay_periods.cc.
  void save(std::span<const std::int32_t> communicators, Standing& standing) const;
  /// They have done for `by` what they had done before: those islands that `moved`, in the order of
  /// save(), go on where the ranks' operations are so much further on; so many collectives are
  /// over.
  void skip(std::span<const std::int32_t> communicators, std::span<const char> moved,
            std::span<const std::int64_t> collectives, Time by,
            std::span<const std::int32_t> shift);

  /// Goes on from those of the phase before, at `now`, when all that happened has been dealt with.
  void go_on_from(FoldedRuns& before, Time now);
  /// Whether an operation belongs to the next phase.
  bool is_later(std::int32_t rank, std::int32_t op) const {
    return communicator_of(rank, op) == StepFold::kLater;
  }

  void enter(std::int32_t rank, std::int32_t op, Time now) override;
  Time advance(Time limit) override;
  bool happened() const override { return !told_.empty(); }
  void dispatch(Time now) override;
  void scale_capacity(PortId port, double share) override;
  /// Of all ranks, not only of the representatives.
  std::int64_t transfers() const override { return transfers_; }
  std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const override;

  /// Wire bits that each of the fold's slots has carried, in collectives that are over.
  std::vector<double> carried_bits() const;

 private:
  struct Communicator {
    SessionKind* kind = nullptr;
    std::int32_t island = -1;
    std::int64_t runs = 0;           // collectives that are over
    std::vector<std::int32_t> open;  // the others, by number in the island
  };
  static constexpr std::int32_t kNotEntered = -1, kFinished = -2;
  struct Run {
    std::int32_t communicator = -1;
    std::int32_t sequence = 0;
    std::int32_t unfinished = 0;   // places
    std::vector<std::int32_t> op;  // per place of the communicator
    Time moved;                    // see OpTiming; so far
  };
  struct Entry {
    Time when;
    std::int32_t run, place;
  };
  /// Joined islands may never rest, so what is over in them is forgotten every so many runs.
  static constexpr std::size_t kForget = 64;
  struct Island {
    std::vector<std::int32_t> communicators;
    std::vector<Run> runs;  // the first run_count
    std::size_t run_count = 0;
    std::size_t forget_at = kForget;  // runs; then those that are over are forgotten
    std::vector<std::int32_t> open;   // runs that are not over
    std::uint32_t version = 0;        // of its entry in the queue
    Time due = Time::max();           // which is for then
    /// Where it is simulated; else its memo is followed.
    std::unique_ptr<IslandSimulation> simulation;
    // Of a session, while it is followed or recorded.
    bool recording = false;
    bool pooled = false;  // the simulation is one of its kind's
    std::int32_t node = SessionMemo::kRoot;
    Time base;
    std::vector<Entry> log;
  };
  struct Due {
    Time when;
    std::int32_t island;
    std::uint32_t version;
    bool operator<(const Due& other) const {
      return when != other.when ? when < other.when : island < other.island;
    }
  };

  std::int32_t place_of(std::int32_t communicator, std::int32_t rank) const;
  void own(std::int32_t island);
  /// Which communicators of this fold are parts of which of the fold before (-1: of none), and
  /// what numbers those have in their islands.
  struct Descent {
    std::vector<std::int32_t> parent;
    std::vector<std::vector<std::int32_t>> children;
    std::vector<std::int32_t> number_in_island;
  };
  void go_on_from(FoldedRuns& before, Island& island, const Descent& descent,
                  std::span<const std::int32_t> local_slot, Time now);
  std::int32_t new_island();
  std::int32_t settle(std::int32_t communicator, std::int32_t rank, Time now);
  std::int32_t open_run(Island& island, std::int32_t communicator, std::int32_t sequence);
  std::int32_t join(std::span<const std::int32_t> islands, std::int32_t communicator, Time now);
  void leave_pool(Island& island);
  void take_in(std::int32_t island, std::int32_t other);
  void put_in(std::int32_t island, std::int32_t run, std::int32_t place, Time now);
  void simulate(Island& island, Time now, Time until);
  void process(std::int32_t island, Time now);
  void tell(Island& island, std::int32_t run, std::int32_t place);
  void schedule(std::int32_t island, Time when);
  void forget_over(Island& island);
  void close(std::int32_t island);
  Time next_on_memo(const Island& island) const;
  std::vector<std::int32_t> islands_of(std::span<const std::int32_t> communicators) const;
  std::int32_t rank_at(std::int32_t communicator, std::size_t place) const;
  std::int32_t sequence_later(const Run& run, std::span<const std::int32_t> shift) const;

  const RankPrograms& work_;
  const StepFold& fold_;
  SessionStore& sessions_;
  Finished finished_;
  std::shared_ptr<const FoldedCommunicators> known_;
  std::vector<Communicator> communicators_;
  std::vector<std::int32_t> owner_;  // per constraint: the island that may put something on it
  std::vector<std::unique_ptr<Island>> islands_;
  std::vector<std::int32_t> free_;
  FourAryHeap<Due> due_;
  Time now_, last_change_;
  struct ToldEnd {
    std::int32_t rank, op;
    Time moved;
  };
  std::vector<ToldEnd> told_;
  std::vector<std::int32_t> others_, reach_, over_;
  std::vector<std::vector<std::int32_t>> spare_op_;  // memory of runs that are over
  std::vector<std::int64_t> codes_;
  std::vector<IslandSimulation::Finish> finishes_;
  std::int64_t transfers_ = 0;
};

/// Adds what connections of a fold have carried to the bits of each port.
void add_port_bits(const StepFold& fold, const std::vector<double>& carried_bits,
                   const Topology& topology, const FlowOptions& flow, std::vector<double>& bits);

}  // namespace lockstep
