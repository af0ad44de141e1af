#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/replay/collective_run.h"
#include "simulator/replay/communication.h"
#include "simulator/replay/recalled_ways.h"

namespace lockstep {

/// Collectives on a network that is expensive to simulate, of which those are told again that were
/// seen before: of a step's thousands of equal collectives few are simulated.
///
/// Communicators of one kind (same schedule, same ways by recalled_ways.h) that are alone on their
/// ports do the same: the first two, the 8th, the 16th, … of a kind are simulated as their ranks
/// come, and those that begin meanwhile follow them; the others are told from the last one, as of
/// the moment at which the last of their ranks has entered that send. With s the time from the
/// first of these to the last, a rank that ends t after that moment ends at most min(s, t) later
/// than if everyone had sent at once. Added to what an end may be off by:
///
///   - the largest difference between the simulated ones of its kind, in when their ranks come, too
///     (ranks one after the other meet on ports otherwise than at one moment);
///   - where the last simulated one's ranks came further apart than its own do, by how much: what
///     some had sent before the others came is not in the rest;
///   - where a told collective shares a port with another that is under way, what the smaller of
///     the two sends over it: with turns taken neither waits for more of the other. Where that
///     other one is simulated, so is this one, and nothing is added;
///   - what steady_pace.h says, where a long collective that is alone on its ports is taken at the
///     pace of its first steps: once that is within the budget its last steps are left out, and all
///     of its ranks end so much later;
///   - a packet's transmission where the ACKs of what was before it may still be under way.
///
/// Of a rank's collectives these add up, and it takes over those of the ranks it meets. While the
/// sum is beyond the budget, no rank waits for a later one, and only those are told that are all
/// there at one moment and of a kind without differences. (Those may still meet others, and what
/// was told before may turn out to differ: the sum can end beyond the budget.)
/// Memory: 200 B a collective under way, its ports once a communicator.
class RecalledRuns final : public Communication {
 public:
  using Finished = CollectiveRuns::Finished;

  RecalledRuns(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
               const Topology& topology, NetworkEngine& network, const ScheduleSource& schedules,
               const ReplayOptions& options, Finished finished);

  void enter(std::int32_t rank, std::int32_t op, Time now) override;
  Time advance(Time limit) override;
  bool happened() const override { return !told_.empty() || simulated_.happened(); }
  std::vector<StuckMessage> stuck() const override { return simulated_.stuck(); }
  void dispatch(Time now) override;
  /// From then on everything is simulated.
  void scale_capacity(PortId port, double share) override;
  std::int64_t transfers() const override { return simulated_.transfers() + recalled_; }
  std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const override;

  /// By how much any end so far may be off; what was told, and its bytes on each port.
  Time error() const { return worst_; }
  std::int64_t recalled() const { return recalled_; }
  std::vector<Bytes> recalled_bytes() const;

 private:
  static constexpr std::int32_t kNone = -1;
  /// What collectives do that are alike, from the moment at which they begin.
  struct Kind {
    std::vector<Time> finish;     // by place: of the last one simulated
    Time difference;              // between those
    Time apart;                   // from the first rank to the last: of the last one simulated
    std::int64_t count = 0;       // begun so far
    std::int64_t samples = 0;     // simulated alone
    std::int64_t most_told = 0;   // of one communicator
    std::int32_t leader = kNone;  // one that is being simulated
  };
  struct Communicator {
    RecalledWays ways;
    std::shared_ptr<const Schedule> schedule;  // keeps the kind's key valid
    Kind* kind = nullptr;
    std::vector<char> sends;  // by place
    std::int32_t senders = 0;
    bool steady = true;          // it is the same every time, and its ranks may wait for the last
    std::int64_t transfers = 0;  // of one collective
    std::int64_t told = 0;       // collectives
    double parts = 0;            // of collectives that were cut short
  };
  enum class State : std::uint8_t { kGathers, kSimulated, kFollows, kTold };
  struct Session {
    Communicator* communicator = nullptr;
    CollectiveRuns::Key key;
    const ProgramOp* first_op = nullptr;  // what all ranks must agree with
    State state = State::kGathers;
    std::vector<std::int32_t> rank, op;                        // by place; kNone: not entered
    std::vector<std::pair<std::int32_t, std::int32_t>> order;  // rank, operation: as they came
    std::int32_t to_come = 0;                                  // senders that have not entered
    std::int32_t unfinished = 0;                               // places
    bool met = false;                                          // others were on its ports
    bool waits = true;                                         // its ranks wait for the last one
    Time cut;                  // what is left out at the steady pace
    bool alone = true;         // so far, on all its ports
    Time first, begin, error;  // error: of its ranks at the end
    Time moved;                // see OpTiming; so far
    std::vector<Time> finish;  // by place: has its data so long after `begin`; max: not yet
    std::vector<std::int32_t> followers;
    /// From the first rank that sent to the last.
    Time apart() const { return waits ? Time() : begin - first; }
  };
  /// Who crosses a port.
  struct Use {
    std::int32_t session;
    std::int64_t bytes;
    Time until;  // Time::max(): it is under way
  };
  struct Due {
    Time when;
    std::int64_t order;
    std::int32_t session, place;
    bool operator>(const Due& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  using CommunicatorKey =
      std::tuple<std::int32_t, std::int32_t, std::int32_t, CommType, std::int64_t>;

  Session& at(std::int32_t session) { return *sessions_[static_cast<std::size_t>(session)]; }
  Communicator& communicator_of(const CollectiveRuns::Key& key, const ProgramOp& op);
  std::int32_t open(const CollectiveRuns::Key& key, const ProgramOp& op, Time now);
  Time allowed(Time now) const;
  void simulate_as_they_come(std::int32_t index, Time now);
  static bool looks(const Kind& kind, std::int64_t count);
  void begin(std::int32_t index, Time now);
  bool meet_others(std::int32_t index, Time now);
  Time longest_over(PortId port, std::int64_t bytes) const;
  void schedule(std::int32_t index, std::int32_t place);
  std::int32_t cut(const CollectiveRuns::Key& key, const SteadyPace& pace, std::int32_t left);
  void know(std::int32_t index, std::int32_t place, Time now);
  void finish(std::int32_t index, std::int32_t place);
  void close(std::int32_t index);
  void keep(const Session& session);

  const RankPrograms& work_;
  const Topology& topology_;
  Finished finished_;
  double budget_, least_share_;
  bool wait_for_last_;
  RecalledWaysFinder finder_;
  CollectiveRuns simulated_;
  bool off_ = false;
  Time now_;

  std::map<CommunicatorKey, std::unique_ptr<Communicator>> communicators_;
  std::map<std::pair<const Schedule*, std::vector<std::int64_t>>, Kind> kinds_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> brief_;  // opened now, and their ranks wait for no later one
  std::unordered_map<CollectiveRuns::Key, std::int32_t, CollectiveRuns::KeyHash> open_;
  std::vector<std::vector<Use>> uses_;  // by port
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<Due> told_;  // of this moment
  std::int64_t order_ = 0, recalled_ = 0;
  std::vector<Time> error_;  // by rank
  Time worst_;
};

}  // namespace lockstep
