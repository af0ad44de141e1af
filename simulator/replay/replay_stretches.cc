// Stretches (stretch.h): where all places of a team have got to one, when they are through is
// looked up, or simulated beside the rest, and only then it becomes part of the ranks' state.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "simulator/replay/replay_run.h"

namespace lockstep {

/// A rank gets to an operation. False where it is to be simulated by itself.
bool ReplayRun::enter_stretch(std::int32_t r, std::int32_t op) {
  const Stretch* stretch = stretches_->starting(work_.program_of_rank[index(r)], op);
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
    const StretchTeams::Kind& kind = teams_->kind_of(
        number, *stretch, *folded_, options_.steady_speeds,
        traced == team.ranks.end() ? -1 : static_cast<std::int32_t>(traced - team.ranks.begin()));
    if (kind.number < 0 || team.rest > now_ || !folded_->idle(team.communicators)) {
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
    run.kind = &kind;
    run.ranks = team.ranks;
    run.entry.assign(team.ranks.size(), Time::max());
    run.events.assign(team.ranks.size(), 0);
    run.to_enter = run.to_end = static_cast<std::int32_t>(team.ranks.size());
    run.exits.assign(team.ranks.size() * stretch->exits.size(), 0);
    run.first = now_;
    run.outcome = nullptr;
    expect_exits(run);
  }
  StretchRun& run = stretch_runs_[index(run_number)];
  run.entry[run.place_of(r)] = now_;
  if (--run.to_enter == 0) {
    tell(run_number);
  }
  return true;
}

/// Exits come after the first operation, be it a computation; by then all have to have entered.
void ReplayRun::expect_exits(const StretchRun& run) {
  const std::int32_t first = run.stretch->first;
  if (run.stretch->exits.empty() || op_of(run.ranks.front(), first).comm != CommType::kNone) {
    return;
  }
  Time due = Time::max();
  for (const std::int32_t rank : run.ranks) {
    const Time begin = now_ + op_of(rank, first).lead;
    due = std::min(due, begin + duration(rank, first, begin));
  }
  own_.push({due, ++order_, run.ranks.front(), OwnEvent::kDue + first}, now_);
}

/// If not all have, it is simulated.
void ReplayRun::exits_due(std::int32_t r, std::int32_t op) {
  const Stretch* const stretch = stretches_->starting(work_.program_of_rank[index(r)], op);
  LOCKSTEP_CHECK(stretch != nullptr, "only stretches have exits");
  const std::int32_t number =
      teams_->team_of(folded_->communicator_of(r, stretch->first_collective));
  if (number >= 0 &&
      std::ranges::any_of(teams_->teams()[index(number)].under_way, [&](std::int32_t each) {
        const StretchRun& run = stretch_runs_[index(each)];
        return run.stretch == stretch && run.to_enter > 0;
      })) {
    simulate_stretches(number);
  }
}

/// An exit of a stretch that is told, or was up to now.
void ReplayRun::exit_ready(std::int32_t r, std::int32_t op) {
  RankState& rank = at(r);
  if (rank.told >= 0) {
    StretchRun& run = stretch_runs_[index(rank.told)];
    run.exits[run.exit_place(r, op)] = 0;
  }
  rank.waits.clear(op, op);
  ready(r, op);
}

/// All have entered: so they will be through when they were, or are in a simulation of it.
void ReplayRun::tell(std::int32_t number) {
  StretchRun& run = stretch_runs_[index(number)];
  run.outcome = teams_->find(run.kind->number, run.entry, run.first);
  if (run.outcome == nullptr) {
    StretchTeams::Outcome* outcome = teams_->add();
    record(run, *outcome);
    run.outcome = outcome;
  }
  for (std::size_t place = 0; place < run.ranks.size(); ++place) {
    const std::size_t exits = run.stretch->exits.size();
    for (std::size_t i = place * exits; i < (place + 1) * exits; ++i) {
      const Time exit = run.first + run.outcome->exits[i];
      LOCKSTEP_CHECK(exit >= now_, "nothing leaves before all have entered");
      run.exits[i] = ++order_;
      own_.push(
          {exit, order_, run.ranks[place], OwnEvent::kExit + run.stretch->exits[i - place * exits]},
          now_);
    }
    const Time end = run.first + run.outcome->finish[place];
    LOCKSTEP_CHECK(end >= now_, "nobody is through before all have entered");
    own_.push({end, ++order_, run.ranks[place], run.stretch->last}, now_);
    run.events[place] = order_;
    at(run.ranks[place]).told = number;
  }
  Time& rest = teams_->teams()[index(run.team)].rest;
  rest = std::max(rest, run.first + run.outcome->rest);
}

void ReplayRun::record(StretchRun& run, StretchTeams::Outcome& outcome) {
  std::vector<RankState> scratch;
  auto queue = simulate_beside(run, Time::max(), scratch);
  LOCKSTEP_CHECK(queue.empty(), "a stretch ends");
  for (std::size_t place = 0; place < run.ranks.size(); ++place) {
    LOCKSTEP_CHECK(finish_[place] < Time::max(), "every place of a stretch gets through");
    outcome.finish.push_back(finish_[place] - run.first);
    const RankState& rank = at(run.ranks[place]);
    for (std::int32_t op = run.stretch->first; op <= run.stretch->last && !rank.traced.empty();
         ++op) {
      const OpTiming& timing = rank.timing[index(op)];
      outcome.timing.push_back({timing.ready - run.first, timing.begin - run.first,
                                timing.end - run.first, timing.moved - run.first});
    }
  }
  for (const Time exit : exit_ready_) {
    LOCKSTEP_CHECK(exit < Time::max(), "every exit of a stretch is ready before it ends");
    outcome.exits.push_back(exit - run.first);
  }
  outcome.rest = beside_rest_ - run.first;
}

/// Simulates a stretch alone, up to `until`. Leaves the ranks as they are but for the timing of a
/// traced one; `scratch` gets those that it simulated (empty ones of places that have not
/// entered), finish_ when they were through. Returns what was to come then.
std::vector<OwnEvent> ReplayRun::simulate_beside(StretchRun& run, Time until,
                                                 std::vector<RankState>& scratch) {
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
  exit_ready_.assign(run.ranks.size() * stretch.exits.size(), Time::max());
  scratch.clear();
  scratch.resize(run.ranks.size());
  for (std::size_t place = 0; place < run.ranks.size(); ++place) {
    if (run.entry[place] == Time::max()) {
      continue;
    }
    RankState& rank = at(run.ranks[place]);
    RankState& copy = scratch[place];
    const std::size_t count = index(stretch.last - stretch.first) + 1;
    const Program& program = work_.program(run.ranks[place]);
    copy.waits =
        RankWaits(program.dependency_counts().subspan(index(stretch.first), count), stretch.first);
    copy.waits.clear(stretch.first, stretch.first);
    copy.streams.resize(program.streams().size());
    for (const Stretch::Use& use : stretch.streams) {
      copy.streams[index(use.stream)].next = use.begin;
    }
    RankState::Stream& first = copy.streams[index(op_of(run.ranks[place], stretch.first).stream)];
    ++first.next;
    first.busy = true;
    copy.left = count;
    copy.timing = std::move(rank.timing);
    copy.traced = rank.traced;
    std::swap(rank, copy);
    own_.push({run.entry[place], ++order_, run.ranks[place], -1 - stretch.first}, now_);
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
void ReplayRun::end_stretch(std::int32_t r) {
  RankState& rank = at(r);
  const std::int32_t number = std::exchange(rank.told, -1);
  StretchRun& run = stretch_runs_[index(number)];
  const Stretch& stretch = *run.stretch;
  rank.waits.clear(stretch.first, stretch.last);
  for (const Stretch::Use& use : stretch.streams) {
    RankState::Stream& stream = rank.streams[index(use.stream)];
    stream.next = use.end;
    stream.busy = false;
  }
  const std::int32_t others =
      stretch.last - stretch.first - static_cast<std::int32_t>(stretch.exits.size());
  rank.left -= index(others);
  done_ops_ += others;
  if (!rank.traced.empty()) {
    for (std::int32_t op = stretch.first; op <= stretch.last; ++op) {
      if (stretch.is_exit(op)) {
        continue;
      }
      const OpTiming& timing = run.outcome->timing[index(op - stretch.first)];
      OpTiming& known = rank.timing[index(op)];
      known = {op == stretch.first ? known.ready : run.first + timing.ready,
               run.first + timing.begin, run.first + timing.end, run.first + timing.moved};
    }
  }
  if (--run.to_end == 0) {
    for (const std::int32_t communicator : run.kind->collectives) {
      folded_->count(communicator);
    }
    close_stretch(number);
  }
  ended(r, stretch.last);
}

/// A rank enters a communicator: the stretches that it may meet are simulated.
void ReplayRun::clear_ports(std::int32_t r, std::int32_t communicator) {
  if (communicator < 0 || !teams_->meets_teams(communicator)) {
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

void ReplayRun::close_stretch(std::int32_t number) {
  std::erase(teams_->teams()[index(stretch_runs_[index(number)].team)].under_way, number);
  free_runs_.push_back(number);
  --under_way_;
}

void ReplayRun::simulate_stretches() {
  for (std::size_t team = 0; teams_ && team < teams_->teams().size(); ++team) {
    simulate_stretches(static_cast<std::int32_t>(team));
  }
}

/// From now on a team's stretches are simulated with everything else, as they stand.
void ReplayRun::simulate_stretches(std::int32_t team_number) {
  StretchTeams::Team& team = teams_->teams()[index(team_number)];
  team.rest = Time();
  while (!team.under_way.empty()) {
    const std::int32_t number = team.under_way.front();
    StretchRun& run = stretch_runs_[index(number)];
    const Stretch& stretch = *run.stretch;
    std::vector<RankState> scratch;
    std::vector<OwnEvent> events = simulate_beside(run, now_, scratch);
    std::vector<char> goes_on(run.ranks.size());
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      RankState& rank = at(run.ranks[place]);
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
      for (std::size_t i = 0; i < stretch.exits.size(); ++i) {
        const std::size_t exit = place * stretch.exits.size() + i;
        if (run.exits[exit] != 0) {
          withdrawn_.insert(std::exchange(run.exits[exit], 0));
        } else if (run.outcome != nullptr) {
          continue;  // it was ready before
        }
        if (exit_ready_[exit] < Time::max()) {
          own_.push({now_, ++order_, run.ranks[place], OwnEvent::kExit + stretch.exits[i]}, now_);
        }
      }
      const RankState& simulated = scratch[place];
      rank.waits.take(stretch.first, stretch.last, simulated.waits);
      for (const Stretch::Use& use : stretch.streams) {
        rank.streams[index(use.stream)] = simulated.streams[index(use.stream)];
      }
      const std::size_t done = index(stretch.last - stretch.first) + 1 - simulated.left;
      rank.left -= done;
      done_ops_ += static_cast<std::int64_t>(done);
      if (finish_[place] < Time::max()) {
        own_.push({finish_[place], ++order_, run.ranks[place], stretch.last}, now_);
      }
    }
    for (const OwnEvent& event : events) {
      if (goes_on[run.place_of(event.rank)] != 0) {
        own_.push(event, now_);
      }
    }
    folded_->take_over(*beside_, team.communicators);
    close_stretch(number);
  }
}

}  // namespace lockstep
