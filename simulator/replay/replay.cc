#include "simulator/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/progress.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/replay/collective_run.h"
#include "simulator/replay/folded_runs.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/recalled_runs.h"
#include "simulator/replay/stretch.h"
#include "simulator/replay/stretch_teams.h"

namespace lockstep {
namespace {

/// A compute or an update time ends, or with -1 - op a computation is to begin.
struct OwnEvent {
  Time when;
  std::int64_t order = 0;  // ties end in the order in which they began
  std::int32_t rank = 0, op = 0;
  bool operator>(const OwnEvent& other) const {
    return when != other.when ? when > other.when : order > other.order;
  }
};

class Replay {
 public:
  Replay(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
         const Topology& topology, NetworkEngine& network, const ScheduleSource& schedules,
         const ReplayOptions& options)
      : Replay(work, options) {
    LOCKSTEP_CHECK(node_of_rank.size() == static_cast<std::size_t>(work.ranks()),
                   "every rank has a node");
    const auto finished = [this](std::int32_t rank, std::int32_t op) { communicated(rank, op); };
    if (options.recall) {
      auto runs = std::make_unique<RecalledRuns>(work, node_of_rank, topology, network, schedules,
                                                 options, finished);
      recalled_ = runs.get();
      runs_ = std::move(runs);
    } else {
      runs_ = std::make_unique<CollectiveRuns>(work, node_of_rank, topology, network, schedules,
                                               options, finished);
    }
    simulated_.resize(static_cast<std::size_t>(work.ranks()));
    std::iota(simulated_.begin(), simulated_.end(), 0);
    stands_for_ = simulated_;
    prepare();
  }

  Replay(const RankPrograms& work, const StepFolder& folder, std::shared_ptr<StepFold> first,
         const ReplayOptions& options)
      : Replay(work, options) {
    folder_ = &folder;
    folds_.push_back(std::move(first));
    if (options.changes.empty() && !options.traced && !options.on_op && !interferes() &&
        (!options.duration || !options.steady_speeds.empty())) {
      stretches_ = Stretches(work);
    }
    fold_runs();
    prepare();
  }

  ReplayResult run() {
    check_limit(total_ops_);
    Progress progress("simulating", options_.show_progress ? total_ops_ : 0);
    for (const std::int32_t r : simulated_) {
      begin(r);
    }
    for (;;) {
      if (options_.limits.stop && options_.limits.stop()) {
        throw ReplayGivenUp(fmt::format("the replay was ended at {}", to_text(now_)));
      }
      if (!later_.empty() && (own_.empty() || own_.top().when > now_)) {
        now_ = runs_->advance(now_);
        if (!runs_->happened()) {
          next_phase();
        }
        runs_->dispatch(now_);
        work_off();
        continue;
      }
      const bool changes = change_ < options_.changes.size() && done_ops_ < total_ops_;
      const Time next_change = changes ? options_.changes[change_].when : Time::max();
      now_ = runs_->advance(std::min(own_.empty() ? Time::max() : own_.top().when, next_change));
      if (!runs_->happened() && own_.empty() && !changes) {
        if (under_way_ == 0) {
          break;
        }
        simulate_stretches();  // some wait for ranks that never come
        continue;
      }
      if (changes && now_ == next_change) {
        change_network();
      }
      runs_->dispatch(now_);
      work_off();
      progress.update(done_ops_);
    }
    if (done_ops_ != total_ops_) {
      stuck();
    }
    ReplayResult result;
    for (const std::int32_t r : stands_for_) {
      result.rank_end.push_back(at(r).end);
      result.end = std::max(result.end, at(r).end);
    }
    if (!ranks_.empty()) {
      result.first_rank = std::move(ranks_[0].timing);
    }
    result.transfers = runs_->transfers();
    if (recalled_ != nullptr) {
      result.error = recalled_->error();
      result.recalled = recalled_->recalled();
      result.recalled_bytes = recalled_->recalled_bytes();
    }
    return result;
  }

  /// After run(), of a folded step: its phases and what their slots have carried.
  const std::vector<std::shared_ptr<StepFold>>& folds() const { return folds_; }
  std::vector<std::vector<double>> carried_bits() {
    carried_.push_back(folded_->carried_bits());
    return std::move(carried_);
  }

 private:
  Replay(const RankPrograms& work, const ReplayOptions& options) : work_(work), options_(options) {}

  /// Communication in the last phase that there is.
  void fold_runs() {
    const StepFold& fold = *folds_.back();
    SessionStore* sessions = folder_->kept() != nullptr ? &folder_->kept()->sessions : nullptr;
    if (sessions == nullptr) {
      sessions_ = std::make_unique<SessionStore>();
      sessions = sessions_.get();
    }
    auto runs = std::make_unique<FoldedRuns>(
        work_, fold, *sessions,
        [this](std::int32_t rank, std::int32_t op) { communicated(rank, op); });
    folded_ = runs.get();
    runs_ = std::move(runs);
    if (!stretches_.empty()) {
      beside_ = std::make_unique<FoldedRuns>(
          *folded_, [this](std::int32_t rank, std::int32_t op) { communicated(rank, op); });
      teams_.emplace(work_, fold, *folded_, stretches_);
    }
    simulated_ = fold.representative;
    stands_for_.clear();
    for (const std::int32_t of_class : fold.class_of_rank) {
      stands_for_.push_back(fold.representative[static_cast<std::size_t>(of_class)]);
    }
  }

  /// Splits the classes of ranks. Each part goes on where its class stands.
  void next_phase() {
    simulate_stretches();
    const std::vector<std::int32_t> stood_for = stands_for_;
    const std::unique_ptr<SessionStore> sessions_before = std::move(sessions_);
    std::unique_ptr<Communication> before = std::move(runs_);
    FoldedRuns& folded_before = *folded_;
    carried_.push_back(folded_before.carried_bits());
    folds_.push_back(folder_->fold(1));
    fold_runs();
    for (std::size_t i = 0; i < change_; ++i) {
      runs_->scale_capacity(options_.changes[i].port, options_.changes[i].share);
    }
    folded_->go_on_from(folded_before, now_);
    before.reset();
    if (folder_->kept() == nullptr) {
      StepFold& fold_before = *folds_[folds_.size() - 2];  // only what it carried is needed
      fold_before.graph = {};
      fold_before.communicators = {};
    }

    std::vector<std::vector<std::int32_t>> parts(ranks_.size());  // of each simulated before
    for (const std::int32_t r : simulated_) {
      parts[static_cast<std::size_t>(stood_for[static_cast<std::size_t>(r)])].push_back(r);
    }
    for (std::size_t old = 0; old < ranks_.size(); ++old) {
      if (parts[old].empty()) {
        continue;
      }
      ranks_[old].waits.trim();
      for (const std::int32_t r : parts[old]) {
        if (static_cast<std::size_t>(r) != old) {
          at(r) = ranks_[old];
        }
        at(r).traced.clear();
      }
    }
    for (std::int32_t r = 0; r < work_.ranks(); ++r) {
      if (is_traced(r)) {
        at(stands_for_[static_cast<std::size_t>(r)]).traced.push_back(r);
      }
    }
    total_ops_ = done_ops_ = 0;
    for (const std::int32_t r : simulated_) {
      if (at(r).traced.empty()) {
        at(r).timing = {};
      }
      const auto ops = static_cast<std::int64_t>(work_.program(r).ops().size());
      total_ops_ += ops;
      done_ops_ += ops - static_cast<std::int64_t>(at(r).left);
    }
    check_limit(total_ops_ - done_ops_);
    std::vector<OwnEvent> events;
    for (; !own_.empty(); own_.pop()) {
      if (!out_of_date(own_.top(), ranks_[static_cast<std::size_t>(own_.top().rank)]) &&
          withdrawn_.erase(own_.top().order) == 0) {
        events.push_back(own_.top());
      }
    }
    for (const OwnEvent& event : events) {
      for (const std::int32_t r : parts[static_cast<std::size_t>(event.rank)]) {
        own_.push({event.when, ++order_, r, event.op});
        if (interferes() && op_of(r, event.op).comm == CommType::kNone) {
          at(r).beside.expect(event.op, order_);
        }
      }
    }
    const auto later = std::move(later_);
    later_.clear();
    for (const auto& [rank, op] : later) {
      for (const std::int32_t r : parts[static_cast<std::size_t>(rank)]) {
        runs_->enter(r, op, now_);
      }
    }
  }

  void check_limit(std::int64_t ops) const {
    const std::int64_t most = options_.limits.most_ops;
    if (most > 0 && ops > most) {
      throw ReplayGivenUp(
          fmt::format("{} operations of {} ranks that differ are too many to replay: at most {}",
                      ops, simulated_.size(), most));
    }
  }

  bool is_traced(std::int32_t r) const { return r == 0 || (options_.traced && options_.traced(r)); }

  /// Ends all that ends now.
  void work_off() {
    while (!own_.empty() && own_.top().when == now_) {
      const OwnEvent event = own_.top();
      own_.pop();
      if (event.op < 0) {
        start(event.rank, -1 - event.op);
      } else if (beside_of_ != nullptr && event.op == beside_of_->stretch->last) {
        finish_[beside_of_->place_of(event.rank)] = now_;
      } else if (!withdrawn_.empty() && withdrawn_.erase(event.order) > 0) {
        continue;
      } else if (at(event.rank).told >= 0 &&
                 event.op == stretch_runs_[index(at(event.rank).told)].stretch->last) {
        end_stretch(event.rank);
      } else if (!out_of_date(event, at(event.rank))) {
        ended(event.rank, event.op);
      }
    }
  }

  void prepare() {
    ranks_.resize(static_cast<std::size_t>(work_.ranks()));
    for (const std::int32_t r : simulated_) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      const Program& program = work_.program(r);
      rank.waits = Waits(program.dependency_counts());
      rank.streams.resize(program.streams().size());
      rank.left = program.ops().size();
      if (std::ranges::any_of(program.ops(),
                              [](const ProgramOp& op) { return op.host > Time(); })) {
        rank.hosts = true;
      }
      total_ops_ += static_cast<std::int64_t>(rank.left);
    }
    for (std::int32_t r = 0; r < work_.ranks(); ++r) {
      if (is_traced(r)) {
        Rank& rank = at(stands_for_[static_cast<std::size_t>(r)]);
        rank.traced.push_back(r);
        rank.timing.resize(work_.program(r).ops().size());
      }
    }
  }

  struct Stream {
    std::int32_t next = 0;  // kProgram: position of the next operation to start
    bool busy = false;
    std::vector<std::int32_t> waiting;  // kNewestFirst: ready operations, newest last
  };
  /// Per operation: how many predecessors have not ended.
  class Waits {
   public:
    Waits() = default;
    /// Of `first` and those that follow it. What comes after them waits for ever.
    explicit Waits(std::span<const std::int32_t> counts, std::int32_t first = 0)
        : first_(first), counts_(counts.begin(), counts.end()) {}
    std::int32_t operator[](std::int32_t op) const {
      if (op < first_) {
        return 0;
      }
      const auto place = static_cast<std::size_t>(op - first_);
      return place < counts_.size() ? counts_[place] : 1;
    }
    /// Of these operations: as there, and nothing.
    void take(std::int32_t first, std::int32_t last, const Waits& from) {
      for (std::int32_t op = first; op <= last; ++op) {
        counts_[static_cast<std::size_t>(op - first_)] = from[op];
      }
    }
    void clear(std::int32_t first, std::int32_t last) {
      std::fill(counts_.begin() + (first - first_), counts_.begin() + (last + 1 - first_), 0);
    }
    /// A predecessor of `op` has ended; how many are left.
    std::int32_t end_one(std::int32_t op) {
      return --counts_[static_cast<std::size_t>(op - first_)];
    }
    /// Forgets operations at the front that wait for nothing.
    void trim() {
      const auto waits = std::ranges::find_if(counts_, [](std::int32_t n) { return n > 0; });
      first_ += static_cast<std::int32_t>(waits - counts_.begin());
      counts_ = std::vector<std::int32_t>(waits, counts_.end());
    }

   private:
    std::int32_t first_ = 0;
    std::vector<std::int32_t> counts_;
  };
  struct Rank {
    Waits waits;
    std::vector<Stream> streams;
    std::vector<OpTiming> timing;  // of traced ranks
    std::size_t left = 0;
    Time end;
    std::vector<std::int32_t> traced;  // the ranks it stands for whose operations are reported
    Time host;                         // until then the host is busy launching
    bool hosts = false;                // whether launching takes time
    /// Computations that wait for a message, and when it came: they are not launched before.
    std::vector<std::pair<std::int32_t, Time>> messages;
    BesideCollectives beside;  // where collectives slow computations down
    std::int32_t told = -1;    // the stretch that it is in
    std::int32_t plain = -1;   // the operation that begins a stretch, which is simulated this time
  };

  const ProgramOp& op_of(std::int32_t rank, std::int32_t op) const {
    return work_.program(rank).ops()[static_cast<std::size_t>(op)];
  }
  Rank& at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void begin(std::int32_t r) {
    const Program& program = work_.program(r);
    for (std::size_t op = 0; op < program.ops().size(); ++op) {
      if (program.dependency_counts()[op] == 0) {
        ready(r, static_cast<std::int32_t>(op));
      }
    }
  }

  void ready(std::int32_t r, std::int32_t op) {
    Rank& rank = at(r);
    if (!rank.traced.empty()) {
      rank.timing[static_cast<std::size_t>(op)].ready = now_;
    }
    const std::int32_t stream = op_of(r, op).stream;
    if (work_.program(r).streams()[static_cast<std::size_t>(stream)] == StreamOrder::kNewestFirst) {
      rank.streams[static_cast<std::size_t>(stream)].waiting.push_back(op);
    }
    feed(r, stream);
  }

  /// Starts the stream's next operation if it is free and one is ready.
  void feed(std::int32_t r, std::int32_t stream_index) {
    Rank& rank = at(r);
    Stream& stream = rank.streams[static_cast<std::size_t>(stream_index)];
    if (stream.busy) {
      return;
    }
    const Program& program = work_.program(r);
    std::int32_t op = -1;
    if (program.streams()[static_cast<std::size_t>(stream_index)] == StreamOrder::kProgram) {
      const auto ops = program.stream_ops(stream_index);
      if (static_cast<std::size_t>(stream.next) < ops.size() &&
          rank.waits[ops[static_cast<std::size_t>(stream.next)]] == 0) {
        op = ops[static_cast<std::size_t>(stream.next++)];
      }
    } else if (!stream.waiting.empty()) {
      op = stream.waiting.back();
      stream.waiting.pop_back();
    }
    if (op < 0) {
      return;
    }
    stream.busy = true;
    if (stretches_.empty() || beside_of_ != nullptr || !enter_stretch(r, op)) {
      start(r, op);
    }
  }

  void start(std::int32_t r, std::int32_t op) {
    Rank& rank = at(r);
    const ProgramOp& what = op_of(r, op);
    Time begin = now_ + what.lead, launched;
    if (what.comm == CommType::kNone && rank.hosts) {
      const auto message =
          std::ranges::find(rank.messages, op, &std::pair<std::int32_t, Time>::first);
      if (message != rank.messages.end()) {
        rank.host = std::max(rank.host, message->second);
        rank.messages.erase(message);
      }
      begin = std::max(begin, rank.host);
      launched = rank.host += what.host;
    }
    if (!rank.traced.empty()) {
      rank.timing[static_cast<std::size_t>(op)].begin = begin;
    }
    if (what.comm == CommType::kNone) {
      const Time taken = options_.duration ? options_.duration(r, op, what, begin) : what.compute;
      if (interferes()) {
        own_.push({rank.beside.start(op, begin, taken, launched, options_.interference), ++order_,
                   r, op});
        rank.beside.expect(op, order_);
      } else {
        own_.push({std::max(begin + taken, launched), ++order_, r, op});
      }
      return;
    }
    if (interferes() && is_collective(what)) {
      collective(r, +1);
    }
    if (folded_ != nullptr && folded_->is_later(r, op)) {
      later_.emplace_back(r, op);
    } else {
      if (under_way_ > 0 && beside_of_ == nullptr) {
        clear_ports(r, folded_->communicator_of(r, op));
      }
      runs_->enter(r, op, now_);
    }
  }

  bool interferes() const { return options_.interference.share > 0; }
  static bool is_collective(const ProgramOp& op) {
    return op.comm != CommType::kNone && op.comm != CommType::kSendRecv;
  }
  /// Whether a computation's end has moved since.
  bool out_of_date(const OwnEvent& event, const Rank& rank) const {
    return interferes() && op_of(event.rank, event.op).comm == CommType::kNone &&
           !rank.beside.expects(event.op, event.order);
  }

  /// A collective of the rank begins or ends.
  void collective(std::int32_t r, std::int32_t by) {
    BesideCollectives& beside = at(r).beside;
    beside.collective(by, now_, options_.interference, [&](std::int32_t op, Time end) {
      own_.push({end, ++order_, r, op});
      beside.expect(op, order_);
    });
  }

  // Stretches (stretch.h): where all places of a team have got to one, when they are through is
  // looked up, or simulated beside the rest, and only then it becomes part of the ranks' state.

  struct StretchRun {
    const Stretch* stretch = nullptr;
    std::int32_t team = -1, kind = -1;
    std::vector<std::int32_t> ranks;   // by place
    std::vector<Time> entry;           // by place; max: not yet
    std::vector<std::int64_t> events;  // by place: of its end
    std::int32_t to_enter = 0, to_end = 0;
    Time first;
    const StretchTeams::Outcome* outcome = nullptr;  // when all have entered

    std::size_t place_of(std::int32_t rank) const {
      return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
    }
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// A rank gets to an operation. False where it is to be simulated by itself.
  bool enter_stretch(std::int32_t r, std::int32_t op) {
    const Stretch* stretch =
        stretches_.starting(work_.program_of_rank[static_cast<std::size_t>(r)], op);
    if (stretch == nullptr || at(r).plain == op) {
      return false;
    }
    const std::int32_t number =
        teams_->team_of(folded_->communicator_of(r, stretch->first_collective));
    if (number < 0) {
      return false;
    }
    StretchTeams::Team& team = teams_->teams()[index(number)];
    std::int32_t run_number = -1;
    for (const std::int32_t each : team.under_way) {
      run_number = stretch_runs_[index(each)].stretch == stretch ? each : run_number;
    }
    if (run_number < 0) {
      const auto traced = std::ranges::find_if(
          team.ranks, [&](std::int32_t rank) { return !at(rank).traced.empty(); });
      const std::int32_t kind = teams_->kind_of(
          number, *stretch, *folded_, options_.steady_speeds,
          traced == team.ranks.end() ? -1 : static_cast<std::int32_t>(traced - team.ranks.begin()));
      if (kind < 0 || team.rest > now_ || !folded_->idle(team.communicators)) {
        for (const std::int32_t rank : team.ranks) {
          at(rank).plain = op;
        }
        return false;
      }
      if (free_runs_.empty()) {
        free_runs_.push_back(static_cast<std::int32_t>(stretch_runs_.size()));
        stretch_runs_.emplace_back();
      }
      run_number = free_runs_.back();
      free_runs_.pop_back();
      team.under_way.push_back(run_number);
      ++under_way_;
      StretchRun& run = stretch_runs_[index(run_number)];
      run.stretch = stretch;
      run.team = number;
      run.kind = kind;
      run.ranks = team.ranks;
      run.entry.assign(team.ranks.size(), Time::max());
      run.events.assign(team.ranks.size(), 0);
      run.to_enter = run.to_end = static_cast<std::int32_t>(team.ranks.size());
      run.first = now_;
      run.outcome = nullptr;
    }
    StretchRun& run = stretch_runs_[index(run_number)];
    run.entry[run.place_of(r)] = now_;
    if (--run.to_enter == 0) {
      tell(run_number);
    }
    return true;
  }

  /// All have entered: so they will be through when they were, or are in a simulation of it.
  void tell(std::int32_t number) {
    StretchRun& run = stretch_runs_[index(number)];
    run.outcome = teams_->find(run.kind, run.entry, run.first);
    if (run.outcome == nullptr) {
      StretchTeams::Outcome* outcome = teams_->add();
      record(run, *outcome);
      run.outcome = outcome;
    }
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      const Time end = run.first + run.outcome->finish[place];
      LOCKSTEP_CHECK(end >= now_, "nobody is through before all have entered");
      own_.push({end, ++order_, run.ranks[place], run.stretch->last});
      run.events[place] = order_;
      at(run.ranks[place]).told = number;
    }
    Time& rest = teams_->teams()[index(run.team)].rest;
    rest = std::max(rest, run.first + run.outcome->rest);
  }

  void record(StretchRun& run, StretchTeams::Outcome& outcome) {
    std::vector<Rank> scratch;
    auto queue = simulate_beside(run, Time::max(), scratch);
    LOCKSTEP_CHECK(queue.empty(), "a stretch ends");
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      LOCKSTEP_CHECK(finish_[place] < Time::max(), "every place of a stretch gets through");
      outcome.finish.push_back(finish_[place] - run.first);
      const Rank& rank = at(run.ranks[place]);
      for (std::int32_t op = run.stretch->first; op <= run.stretch->last && !rank.traced.empty();
           ++op) {
        const OpTiming& timing = rank.timing[index(op)];
        outcome.timing.push_back(
            {timing.ready - run.first, timing.begin - run.first, timing.end - run.first});
      }
    }
    outcome.rest = beside_rest_ - run.first;
  }

  /// Simulates a stretch alone, up to `until`. Leaves the ranks as they are but for the timing of a
  /// traced one; `scratch` gets those that it simulated (empty ones of places that have not
  /// entered), finish_ when they were through. Returns what was to come then.
  std::vector<OwnEvent> simulate_beside(StretchRun& run, Time until, std::vector<Rank>& scratch) {
    auto own = std::exchange(own_, {});
    const Time now = now_;
    const std::int64_t done = done_ops_;
    const Stretch& stretch = *run.stretch;
    const std::span<const std::int32_t> communicators =
        teams_->teams()[index(run.team)].communicators;
    FoldedRuns* const folded = folded_;
    std::unique_ptr<Communication> runs = std::move(runs_);
    folded_ = beside_.get();
    runs_ = std::move(beside_);
    folded_->restart(communicators, run.first);
    beside_of_ = &run;
    finish_.assign(run.ranks.size(), Time::max());
    scratch.clear();
    scratch.resize(run.ranks.size());
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      if (run.entry[place] == Time::max()) {
        continue;
      }
      Rank& rank = at(run.ranks[place]);
      Rank& copy = scratch[place];
      const std::size_t count = index(stretch.last - stretch.first) + 1;
      const Program& program = work_.program(run.ranks[place]);
      copy.waits =
          Waits(program.dependency_counts().subspan(index(stretch.first), count), stretch.first);
      copy.waits.clear(stretch.first, stretch.first);
      copy.streams.resize(program.streams().size());
      for (const Stretch::Use& use : stretch.streams) {
        copy.streams[index(use.stream)].next = use.begin;
      }
      Stream& first = copy.streams[index(op_of(run.ranks[place], stretch.first).stream)];
      ++first.next;
      first.busy = true;
      copy.left = count;
      copy.timing = std::move(rank.timing);
      copy.traced = rank.traced;
      std::swap(rank, copy);
      own_.push({run.entry[place], ++order_, run.ranks[place], -1 - stretch.first});
    }
    for (;;) {
      now_ = runs_->advance(std::min(own_.empty() ? Time::max() : own_.top().when, until));
      if (!runs_->happened() && (own_.empty() || own_.top().when > until)) {
        break;
      }
      runs_->dispatch(now_);
      work_off();
    }
    beside_rest_ = folded_->last_change();
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      if (run.entry[place] < Time::max()) {
        std::swap(at(run.ranks[place]), scratch[place]);
        at(run.ranks[place]).timing = std::move(scratch[place].timing);
      }
    }
    beside_of_ = nullptr;
    beside_.reset(static_cast<FoldedRuns*>(runs_.release()));
    runs_ = std::move(runs);
    folded_ = folded;
    now_ = now;
    done_ops_ = done;
    std::vector<OwnEvent> left;
    for (; !own_.empty(); own_.pop()) {
      left.push_back(own_.top());
    }
    own_ = std::move(own);
    return left;
  }

  /// A place is through.
  void end_stretch(std::int32_t r) {
    Rank& rank = at(r);
    const std::int32_t number = std::exchange(rank.told, -1);
    StretchRun& run = stretch_runs_[index(number)];
    const Stretch& stretch = *run.stretch;
    rank.waits.clear(stretch.first, stretch.last);
    for (const Stretch::Use& use : stretch.streams) {
      Stream& stream = rank.streams[index(use.stream)];
      stream.next = use.end;
      stream.busy = false;
    }
    const std::int32_t others = stretch.last - stretch.first;
    rank.left -= static_cast<std::size_t>(others);
    done_ops_ += others;
    if (!rank.traced.empty()) {
      for (std::int32_t op = stretch.first; op <= stretch.last; ++op) {
        const OpTiming& timing = run.outcome->timing[index(op - stretch.first)];
        OpTiming& known = rank.timing[index(op)];
        known = {op == stretch.first ? known.ready : run.first + timing.ready,
                 run.first + timing.begin, run.first + timing.end};
      }
    }
    if (--run.to_end == 0) {
      for (std::int32_t op = stretch.first; op <= stretch.last; ++op) {
        if (op_of(r, op).comm != CommType::kNone) {
          folded_->count(folded_->communicator_of(r, op));
        }
      }
      close_stretch(number);
    }
    ended(r, stretch.last);
  }

  /// A rank enters a communicator: the stretches that it may meet are simulated.
  void clear_ports(std::int32_t r, std::int32_t communicator) {
    if (communicator < 0) {
      return;
    }
    const std::int32_t its = teams_->team_of(communicator);
    for (const std::int32_t constraint : folded_->reach(communicator, r)) {
      const std::int32_t team = teams_->team_at(constraint);
      if (team >= 0 && (team != its || teams_->teams()[index(team)].rest > now_) &&
          !teams_->teams()[index(team)].under_way.empty()) {
        simulate_stretches(team);
      }
    }
  }

  void close_stretch(std::int32_t number) {
    std::erase(teams_->teams()[index(stretch_runs_[index(number)].team)].under_way, number);
    free_runs_.push_back(number);
    --under_way_;
  }

  void simulate_stretches() {
    for (std::size_t team = 0; teams_ && team < teams_->teams().size(); ++team) {
      simulate_stretches(static_cast<std::int32_t>(team));
    }
  }

  /// From now on a team's stretches are simulated with everything else, as they stand.
  void simulate_stretches(std::int32_t team_number) {
    StretchTeams::Team& team = teams_->teams()[index(team_number)];
    team.rest = Time();
    while (!team.under_way.empty()) {
      const std::int32_t number = team.under_way.front();
      StretchRun& run = stretch_runs_[index(number)];
      const Stretch& stretch = *run.stretch;
      std::vector<Rank> scratch;
      std::vector<OwnEvent> events = simulate_beside(run, now_, scratch);
      std::vector<char> goes_on(run.ranks.size());
      for (std::size_t place = 0; place < run.ranks.size(); ++place) {
        Rank& rank = at(run.ranks[place]);
        if (run.entry[place] == Time::max()) {
          rank.plain = stretch.first;
          continue;
        }
        if (run.outcome != nullptr && rank.told != number) {
          continue;  // it was through before
        }
        goes_on[place] = 1;
        if (std::exchange(rank.told, -1) >= 0) {
          withdrawn_.insert(run.events[place]);
        }
        const Rank& simulated = scratch[place];
        rank.waits.take(stretch.first, stretch.last, simulated.waits);
        for (const Stretch::Use& use : stretch.streams) {
          rank.streams[index(use.stream)] = simulated.streams[index(use.stream)];
        }
        const std::size_t done = index(stretch.last - stretch.first) + 1 - simulated.left;
        rank.left -= done;
        done_ops_ += static_cast<std::int64_t>(done);
        if (finish_[place] < Time::max()) {
          own_.push({finish_[place], ++order_, run.ranks[place], stretch.last});
        }
      }
      for (const OwnEvent& event : events) {
        if (goes_on[run.place_of(event.rank)] != 0) {
          own_.push(event);
        }
      }
      folded_->take_over(*beside_, team.communicators);
      close_stretch(number);
    }
  }

  /// Makes the changes that are due.
  void change_network() {
    for (; change_ < options_.changes.size() && options_.changes[change_].when == now_; ++change_) {
      const NetworkChange& change = options_.changes[change_];
      runs_->scale_capacity(change.port, change.share);
    }
  }

  void communicated(std::int32_t r, std::int32_t op) {
    const ProgramOp& what = op_of(r, op);
    own_.push({now_ + what.compute, ++order_, r, op});
  }

  void ended(std::int32_t r, std::int32_t op) {
    Rank& rank = at(r);
    if (!rank.traced.empty()) {
      OpTiming& timing = rank.timing[static_cast<std::size_t>(op)];
      timing.end = now_;
      for (const std::int32_t traced : rank.traced) {
        if (options_.on_op && options_.traced && options_.traced(traced)) {
          options_.on_op(traced, op, timing);
        }
      }
    }
    --rank.left;
    ++done_ops_;
    rank.end = now_;
    const std::int32_t stream = op_of(r, op).stream;
    rank.streams[static_cast<std::size_t>(stream)].busy = false;
    const ProgramOp& what = op_of(r, op);
    if (interferes()) {
      if (what.comm == CommType::kNone) {
        rank.beside.end(op);
      } else if (is_collective(what)) {
        collective(r, -1);
      }
    }
    const bool received = rank.hosts && (what.type == OpType::kForwardReceive ||
                                         what.type == OpType::kBackwardReceive);
    for (const std::int32_t next : work_.program(r).successors(op)) {
      if (received && op_of(r, next).comm == CommType::kNone) {
        std::erase_if(rank.messages, [&](const auto& each) { return each.first == next; });
        rank.messages.emplace_back(next, now_);
      }
      if (rank.waits.end_one(next) == 0) {
        ready(r, next);
      }
    }
    feed(r, stream);
  }

  /// Names the first few ranks that cannot go on, what they are in and whom they wait for.
  [[noreturn]] void stuck() const {
    constexpr std::size_t kShown = 4;
    if (const std::vector<StuckMessage> messages = runs_->stuck(); !messages.empty()) {
      std::string text;
      for (std::size_t i = 0; i < std::min(messages.size(), kShown); ++i) {
        const StuckMessage& m = messages[i];
        const ProgramOp& what = op_of(m.rank, m.op);
        text += fmt::format(
            "\n  rank {}: in {} ({} of {}), sending to rank {} over link {}-{}, "
            "down since {}",
            m.rank, name_of(m.rank, m.op), lockstep::name_of(what.comm), to_text(what.bytes),
            m.peer, m.ends.first.value, m.ends.second.value, to_text(m.since));
      }
      throw Error(fmt::format("the step hangs: {} transfers wait for links that are down{}{}",
                              messages.size(), text, messages.size() > kShown ? "\n  …" : ""))
          .hint("give the fault an end (@10ms-20ms), a time to reroute, or the fabric another way");
    }
    std::size_t stuck_ranks = 0;
    std::string text;
    for (const std::int32_t r : simulated_) {
      const Rank& rank = ranks_[static_cast<std::size_t>(r)];
      if (rank.left == 0 || ++stuck_ranks > kShown) {
        continue;
      }
      text += fmt::format("\n  rank {}: {}", r, why_stuck(r));
    }
    throw Error(fmt::format("the step cannot finish: {} of {} ranks wait for each other{}{}",
                            stuck_ranks, simulated_.size(), text,
                            stuck_ranks > kShown ? "\n  …" : ""))
        .hint("look for a communication that some rank of the group never reaches");
  }

  std::string name_of(std::int32_t r, std::int32_t op) const {
    return options_.op_name ? options_.op_name(r, op) : fmt::format("op {}", op);
  }

  std::string why_stuck(std::int32_t r) const {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    const Program& program = work_.program(r);
    for (std::size_t i = 0; i < program.ops().size(); ++i) {
      const auto op = static_cast<std::int32_t>(i);
      if (rank.waits[op] != 0 || program.ops()[i].comm == CommType::kNone) {
        continue;
      }
      const std::vector<std::int32_t> missing = runs_->missing(r, op);
      if (!missing.empty()) {
        return fmt::format(
            "in {} ({} of {}), waiting for rank {} to enter it", name_of(r, op),
            lockstep::name_of(program.ops()[i].comm), to_text(program.ops()[i].bytes),
            fmt::join(missing.begin(),
                      missing.begin() + std::min<std::ptrdiff_t>(4, std::ssize(missing)), ", "));
      }
    }
    return fmt::format("{} operations left, none of them can start", rank.left);
  }

  const RankPrograms& work_;
  const ReplayOptions& options_;
  std::vector<Rank> ranks_;
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
  Stretches stretches_;
  std::optional<StretchTeams> teams_;
  std::vector<StretchRun> stretch_runs_;
  std::vector<std::int32_t> free_runs_;
  std::int32_t under_way_ = 0;
  std::unordered_set<std::int64_t> withdrawn_;  // events; never iterated
  std::unique_ptr<FoldedRuns> beside_;          // where stretches are simulated
  const StretchRun* beside_of_ = nullptr;       // then: which one
  std::vector<Time> finish_;                    // and when its places are through
  Time beside_rest_;                            // and when nothing happened any more
  std::vector<std::int32_t> simulated_;         // ranks
  std::vector<std::int32_t> stands_for_;        // per rank: the simulated one that behaves alike
  std::priority_queue<OwnEvent, std::vector<OwnEvent>, std::greater<>> own_;
  Time now_;
  std::int64_t order_ = 0;
  std::size_t change_ = 0;  // the next of options_.changes
  std::int64_t done_ops_ = 0, total_ops_ = 0;
};

}  // namespace

ReplayResult replay(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                    const Topology& topology, NetworkEngine& network,
                    const ScheduleSource& schedules, const ReplayOptions& options) {
  return Replay(work, node_of_rank, topology, network, schedules, options).run();
}

FoldedResult replay_folded(const RankPrograms& work, const StepFolder& folder,
                           std::shared_ptr<StepFold> first, const Topology& topology,
                           const FlowOptions& flow, const ReplayOptions& options) {
  Replay replay(work, folder, std::move(first), options);
  FoldedResult result;
  result.replay = replay.run();
  if (folder.kept() != nullptr) {
    return result;
  }
  const std::vector<std::vector<double>> carried = replay.carried_bits();
  std::vector<double> bits(2 * topology.links.size());
  for (std::size_t phase = 0; phase < carried.size(); ++phase) {
    add_port_bits(*replay.folds()[phase], carried[phase], topology, flow, bits);
  }
  const PathFinder paths(topology, flow);
  for (std::size_t port = 0; port < bits.size(); ++port) {
    PortUse& use = result.ports.emplace_back();
    use.bytes = Bytes(std::llround(bits[port] / 8));
    if (bits[port] > 0) {
      use.busy = Time::seconds(bits[port] / paths.capacity(PortId(port)));
    }
  }
  return result;
}

}  // namespace lockstep
