#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "simulator/replay/folded_runs.h"
#include "simulator/replay/own_queue.h"
#include "simulator/replay/program_period.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/replay_rank.h"
#include "simulator/replay/standing.h"
#include "simulator/replay/step_fold.h"
#include "simulator/replay/stretch.h"
#include "simulator/replay/stretch_teams.h"

namespace lockstep {

class RecalledRuns;
struct CommFormula;

/// One replay: what replay() and replay_folded() do. Ranks that are simulated stand for all that do
/// the same; without a fold each stands for itself. A folded step goes through the phases of its
/// folder (replay_phases.cc), and tells stretches again (replay_stretches.cc).
class ReplayRun {
 public:
  ReplayRun(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
            const Topology& topology, NetworkEngine& network, const ScheduleSource& schedules,
            const ReplayOptions& options);
  ReplayRun(const RankPrograms& work, const StepFolder& folder, std::shared_ptr<StepFold> first,
            const ReplayOptions& options);
  ReplayRun(const RankPrograms& work, const CommFormula& formula, const ReplayOptions& options);

  /// Once.
  ReplayResult run();

  /// After run(), of a folded step: its phases and what their slots have carried.
  const std::vector<std::shared_ptr<StepFold>>& folds() const { return folds_; }
  std::vector<std::vector<double>> carried_bits();

 private:
  ReplayRun(const RankPrograms& work, const ReplayOptions& options)
      : work_(work), options_(options), begun_order_(work) {}

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  const ProgramOp& op_of(std::int32_t rank, std::int32_t op) const {
    return work_.program(rank).ops()[index(op)];
  }
  RankState& at(std::int32_t rank) { return ranks_[index(rank)]; }
  bool is_traced(std::int32_t r) const { return r == 0 || (options_.traced && options_.traced(r)); }
  bool interferes() const { return options_.interference.any(); }
  static bool is_collective(const ProgramOp& op) {
    return op.comm != CommType::kNone && op.comm != CommType::kSendRecv;
  }
  /// Whether a computation's end has moved since.
  bool out_of_date(const OwnEvent& event, const RankState& rank) const {
    return interferes() && op_of(event.rank, event.op).comm == CommType::kNone &&
           !rank.beside.expects(event.op, event.order);
  }

  void prepare();
  void check_limit(std::int64_t ops) const;
  void check_work() const;
  std::int64_t work() const;
  void work_off();
  void begin(std::int32_t r);
  void ready(std::int32_t r, std::int32_t op);
  void feed(std::int32_t r, std::int32_t stream);
  void start(std::int32_t r, std::int32_t op);
  Time duration(std::int32_t r, std::int32_t op, Time begin) const;
  void collective(std::int32_t r, const ProgramOp& what, std::int32_t by);
  void communicated(std::int32_t r, std::int32_t op, Time moved);
  void ended(std::int32_t r, std::int32_t op);
  bool frees_stream_early(std::int32_t r, std::int32_t op) const;
  void change_network();

  // replay_stuck.cc
  [[noreturn]] void stuck() const;
  std::string name_of(std::int32_t r, std::int32_t op) const;
  std::string why_stuck(std::int32_t r) const;

  // replay_phases.cc
  void fold_runs();
  void next_phase();

  // replay_stretches.cc
  struct StretchRun {
    const Stretch* stretch = nullptr;
    std::int32_t team = -1;
    const StretchTeams::Kind* kind = nullptr;
    std::vector<std::int32_t> ranks;   // by place
    std::vector<Time> entry;           // by place; max: not yet
    std::vector<std::int64_t> events;  // by place: of its end
    std::vector<std::int64_t> exits;   // as the outcome's: events to come; 0: none
    std::int32_t to_enter = 0, to_end = 0;
    Time first;
    const StretchTeams::Outcome* outcome = nullptr;  // when all have entered

    std::size_t place_of(std::int32_t rank) const {
      return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
    }
    /// Among the exits of all places.
    std::size_t exit_place(std::int32_t rank, std::int32_t op) const {
      return place_of(rank) * stretch->exits.size() +
             static_cast<std::size_t>(std::ranges::lower_bound(stretch->exits, op) -
                                      stretch->exits.begin());
    }
  };

  bool enter_stretch(std::int32_t r, std::int32_t op);
  void tell(std::int32_t number);
  void record(StretchRun& run, StretchTeams::Outcome& outcome);
  void expect_exits(const StretchRun& run);
  void exit_ready(std::int32_t r, std::int32_t op);
  void exits_due(std::int32_t r, std::int32_t op);
  std::vector<OwnEvent> simulate_beside(StretchRun& run, Time until,
                                        std::vector<RankState>& scratch);
  void end_stretch(std::int32_t r);
  void clear_ports(std::int32_t r, std::int32_t communicator);
  void close_stretch(std::int32_t number);
  void simulate_stretches();
  void simulate_stretches(std::int32_t team);

  // replay_periods.cc
  struct RepeatingPart {
    std::vector<std::int32_t> ranks, communicators, teams;
    std::int32_t anchor = -1;  // the rank that is looked at
    std::int32_t looks = 0;
    std::unordered_map<std::uint64_t, std::int32_t> seen;  // signatures: at which look last
    std::optional<Standing> kept;                          // compared with
    std::uint64_t kept_signature = 0;
    std::int32_t kept_until = 0;  // look
    std::int32_t tries = 0;       // moments to come at which it may be compared
    bool over = false;            // its programs do not repeat themselves any more

    void look_anew() {
      looks = 0;
      seen.clear();
      kept.reset();
    }
  };
  static constexpr std::int32_t kUnknown = -2, kNever = INT32_MAX;

  void watch_parts();
  void watch_ranks();
  const ProgramPeriod& period_of_rank(std::int32_t r) const;
  void look_after(std::int32_t r, std::int32_t ops);
  void look_for_repetition();
  void compare(RepeatingPart& part);
  void find_events(const RepeatingPart& part);
  std::uint64_t signature() const;
  Standing save(const RepeatingPart& part);
  void save_rank(std::int32_t r, Standing& standing);
  void save_team(std::int32_t number, Standing& standing);
  bool skip_turns(RepeatingPart& part, const Standing& standing);
  bool in_stretch(std::int32_t r, std::int32_t op);
  void move_rank(std::int32_t r, std::int32_t first, std::int32_t turn_ops, Time turn,
                 std::int32_t by);
  void move_team(std::int32_t number, Time by, std::span<const std::int32_t> shift);
  Time others_reach_the_next_phase(const RepeatingPart& part);
  Time reaches_the_next_phase(std::int32_t r);
  std::int32_t lead_of(std::int32_t r);
  Time turn_of(std::int32_t r);

  const RankPrograms& work_;
  const ReplayOptions& options_;
  std::vector<RankState> ranks_;
  std::unique_ptr<SessionStore> sessions_;  // of folded runs, where the folder keeps none
  std::unique_ptr<Communication> runs_;
  const RecalledRuns* recalled_ = nullptr;  // runs_, where collectives are recalled
  // Of a folded step: runs_, its phases so far, and what waits for the next one.
  FoldedRuns* folded_ = nullptr;
  const StepFolder* folder_ = nullptr;
  std::vector<std::shared_ptr<StepFold>> folds_;
  std::vector<std::vector<double>> carried_;
  std::vector<std::pair<std::int32_t, std::int32_t>> later_;  // rank, operation
  // Its stretches, the teams of the phase, and those under way.
  std::shared_ptr<const Stretches> stretches_;  // or nothing
  std::optional<StretchTeams> teams_;
  std::vector<StretchRun> stretch_runs_;
  std::vector<std::int32_t> free_runs_;
  std::int32_t under_way_ = 0;
  std::unordered_set<std::int64_t> withdrawn_;  // events; never iterated
  std::unique_ptr<FoldedRuns> beside_;          // where stretches are simulated
  const StretchRun* beside_of_ = nullptr;       // then: which one
  std::vector<Time> finish_, exit_ready_;       // and when its places are through, exits ready
  Time beside_rest_;                            // and when nothing happened any more
  // Its parts that may repeat themselves.
  std::shared_ptr<const std::vector<ProgramPeriod>> periods_;  // by program
  std::vector<RepeatingPart> parts_;
  std::vector<std::int32_t> part_of_communicator_;
  std::int32_t wanted_ = 0;               // parts with tries
  std::vector<std::int32_t> part_of_;     // per rank
  std::vector<std::int32_t> came_round_;  // ranks
  std::vector<std::size_t> anchor_left_;  // per rank: what its anchor had left when it came round
  std::vector<std::int32_t> leads_to_next_;  // by program, where nothing is kept
  std::vector<Time> turn_of_;                // per rank; 0: not known
  std::vector<OwnEvent> part_events_;
  std::vector<char> has_events_, moved_;           // per rank; per block
  std::vector<std::int32_t> simulated_;            // ranks
  std::int64_t moments_ = 0, folded_moments_ = 0;  // folded: of the network, where no step is kept
  std::vector<std::int32_t> stands_for_;           // per rank: the simulated one that behaves alike
  OwnQueue own_;
  BegunOrder begun_order_;
  Time now_;
  std::int64_t order_ = 0;
  std::int32_t most_beside_ = 0;
  std::size_t change_ = 0;  // the next of options_.changes
  std::int64_t done_ops_ = 0, total_ops_ = 0;
};

}  // namespace lockstep
