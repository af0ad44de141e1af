#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/communication.h"
#include "simulator/replay/prepared_schedules.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/steady_pace.h"

namespace lockstep {

/// The collectives under way: who has entered, which transfers may start, who has finished.
/// Entering and network events go in; transfers go to the engine; finished ranks come out through
/// a callback. Finished collectives give their memory back; their schedules are kept for the next
/// as long as they take less than 256 MiB together. O(1) amortised per transfer event.
class CollectiveRuns final : public Communication {
 public:
  /// `finished(rank, op)` is called when a rank's share of what it entered as `op` is done.
  /// `moved`: see OpTiming.
  using Finished = std::function<void(std::int32_t rank, std::int32_t op, Time moved)>;

  /// What tells a collective from all others: the communicator and the how-manieth on it.
  struct Key {
    std::int32_t family = -1;  // -1: send/receive; -2 - f: one within family f
    std::int32_t group = 0;    // or the sender
    std::int32_t other = 0;    // or the receiver
    std::int32_t sequence = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  /// `early(key, place)`, where given, is called when a rank's share is done before it has entered.
  using Early = std::function<void(const Key& key, std::int32_t place)>;
  /// `paced(key, pace, left)`, where given, is asked after each 8th step of a collective whose
  /// connections all have equally many transfers: how many of the `left` ones that nobody has begun
  /// are left out.
  using Paced =
      std::function<std::int32_t(const Key& key, const SteadyPace& pace, std::int32_t left)>;

  CollectiveRuns(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                 const Topology& topology, NetworkEngine& network, const ScheduleSource& schedules,
                 const ReplayOptions& options, Finished finished, Early early = nullptr,
                 Paced paced = nullptr);

  void enter(std::int32_t rank, std::int32_t op, Time now) override;
  Time advance(Time limit) override;
  bool happened() const override { return !events_.empty(); }
  void dispatch(Time now) override;
  void scale_capacity(PortId port, double share) override { network_.scale_capacity(port, share); }
  std::vector<StuckMessage> stuck() const override;
  std::int64_t transfers() const override { return transfers_; }
  std::int64_t passed() const override { return passed_; }
  std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const override;

  Key key_of(std::int32_t rank, const ProgramOp& op) const;
  std::int32_t place_of(const Key& key, std::int32_t rank) const;
  /// The ranks that take part, by place.
  std::vector<std::int32_t> members_of(const Key& key) const;
  /// How it is carried out. Kept or built, as for enter().
  std::shared_ptr<const Schedule> schedule_of(const Key& key, const ProgramOp& op);
  /// Where a place of the schedule is.
  NodeId node_of(const Schedule& schedule, const std::vector<std::int32_t>& members,
                 std::int32_t place) const;

 private:
  struct SlotState {
    std::int32_t started = 0, delivered = 0;  // transfers, the first ones
    /// Before which the next transfer does not start: of a connection that of the one before it;
    /// with flows that queue when there is a receive for what it waits for.
    Time earliest;
  };
  /// What a rank of SimAI's counts of its transfers: see memory_time().
  struct Counted {
    std::vector<std::int32_t> started;  // per channel, in this cycle
    bool adding = false;
  };
  struct Run {
    std::shared_ptr<PreparedSchedule> prepared;
    std::optional<Schedule> uneven;  // where ranks receive unequal parts: the same with sizes
    const std::vector<std::int32_t>* members = nullptr;
    std::vector<std::int32_t> pair;  // storage of `members` for send/receive
    CommType comm = CommType::kNone;
    Bytes bytes;
    Key key;
    std::vector<std::int32_t> op;      // per rank's place: the operation it entered as, -1 before
    std::vector<std::int64_t> shares;  // per rank's place: what is left
    std::vector<SlotState> slots;
    std::vector<ConnectionId>* connections = nullptr;  // of `prepared`
    std::size_t connected = 0;                         // of them, the first ones
    std::unordered_set<std::uint32_t> overtook;        // separate flows delivered before others
    std::int32_t unfinished = 0;                       // places
    std::int32_t left_out = 0;                         // steps, the last ones
    Time moved;                                        // see OpTiming; so far
    bool connects_each = false;  // has_connection_each(), and whether the network has queues
    bool queues = false;
    Bytes bytes_each;       // of `prepared`, or -1
    std::int64_t sure = 0;  // so many more events finish no place; less than 0: that is not counted
    std::vector<Counted> counted;  // per rank's place; empty where nothing is counted
    std::optional<SteadyPace> pace;
  };

  std::int32_t open_run(const Key& key, const ProgramOp& op);
  bool has_connection_each(const Schedule& schedule) const;
  bool queues(const Schedule& schedule) const;
  void connect(Run& run, std::size_t connections);
  void make_uneven(Run& run, const ProgramOp& op) const;
  void start_from(std::int32_t run, std::int32_t place, Time now);
  void start_ready(std::int32_t run, std::int32_t slot, Time now);
  Time memory_time(Run& run, const Slot& slot, bool forwards) const;
  void share_done(std::int32_t run, std::int32_t place);
  bool nobody_finishes();
  static std::int64_t count_sure(Run& run);
  void handle(const NetworkEvent& event, Time now);
  void leave_out(Run& run);
  [[noreturn]] void disagree(const Run& run, std::int32_t rank, std::int32_t op) const;

  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const Adjacency adjacency_;
  NetworkEngine& network_;
  PreparedSchedules schedules_;
  const ReplayOptions& options_;
  Finished finished_;
  Early early_;
  Paced paced_;
  std::vector<NetworkEvent> events_;  // of this moment
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<std::int32_t> free_;
  std::unordered_map<Key, std::int32_t, KeyHash> open_;  // never iterated
  std::int64_t transfers_ = 0;
  std::int64_t passed_ = 0;
};

}  // namespace lockstep
