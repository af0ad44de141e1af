// Microbatches that repeat themselves. Parts of a folded step that share nothing (replicas, say)
// are looked at each time that a rank of them has come round its program's period
// (program_period.h). A part that stands as it stood some periods ago, but for a shift in time and
// in its ranks' operations, number for number (standing.h), does the same again for as long as the
// programs are alike: everything that happens hangs on that and on nothing else. So it is moved on
// by as many such turns as fit. What did not change meanwhile stays as it is. To write all of that
// down costs much, so it is done only where the part's signature, what is to come for its ranks
// relative to now, is one that was seen before, and the next time that it is seen.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/replay_run.h"

namespace lockstep {
namespace {

constexpr std::size_t kWatched = 8;  // of so many ranks one is looked at whether it has come round
constexpr std::int32_t kTries = 64;  // moments at which it is seen whether anything is on the wire
constexpr std::int32_t kSeveral = 64;  // looks in vain after which it is looked less often

/// `op`, or a computation that it waits for, directly or not; -1 where none is found.
std::int32_t computation_before(const Program& program, std::int32_t op) {
  while (op >= 0 && program.ops()[static_cast<std::size_t>(op)].comm != CommType::kNone) {
    std::int32_t before = op - 1;
    while (before >= 0 &&
           std::ranges::find(program.successors(before), op) == program.successors(before).end()) {
      --before;
    }
    op = before;
  }
  return op;
}

}  // namespace

/// Finds the parts of the phase that begins.
void ReplayRun::watch_parts() {
  parts_.clear();
  came_round_.clear();
  wanted_ = 0;
  // Worth while where ranks of one program differ already, and all that there is left is not the
  // end.
  if (stretches_ == nullptr ||
      (periods_ == nullptr && (folds_.size() > 1 || simulated_.size() <= work_.programs.size()))) {
    return;
  }
  if (periods_ == nullptr) {
    std::shared_ptr<const std::vector<ProgramPeriod>> none;
    auto& known = folder_->kept() != nullptr ? folder_->kept()->periods : none;
    if (known == nullptr) {
      auto periods = std::make_shared<std::vector<ProgramPeriod>>();
      for (std::size_t p = 0; p < work_.programs.size(); ++p) {
        const bool ordered =
            std::ranges::all_of(work_.programs[p].streams(),
                                [](StreamOrder order) { return order == StreamOrder::kProgram; });
        periods->push_back(ordered
                               ? period_of(work_, static_cast<std::int32_t>(p), stretches_.get())
                               : ProgramPeriod());
      }
      known = std::move(periods);
    }
    periods_ = known;
  }
  if (std::ranges::all_of(*periods_, [](const ProgramPeriod& each) { return each.length == 0; })) {
    return;
  }
  const StepFold& fold = *folds_.back();
  // Classes and, after them, constraints that communicators connect.
  std::vector<std::int32_t> leader(fold.representative.size() + fold.graph.capacity.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::int32_t i) {
    while (leader[index(i)] != i) {
      i = leader[index(i)] = leader[index(leader[index(i)])];
    }
    return i;
  };
  const auto classes = static_cast<std::int32_t>(fold.representative.size());
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    const std::int32_t first = find(fold.communicators[c].classes.front());
    for (const std::int32_t of_class : fold.communicators[c].classes) {
      leader[index(find(of_class))] = first;
    }
    for (const std::int32_t constraint : folded_->constraints(static_cast<std::int32_t>(c))) {
      leader[index(find(classes + constraint))] = first;
    }
  }
  std::map<std::int32_t, std::size_t> part_of;  // by leader
  part_of_.assign(ranks_.empty() ? index(work_.ranks()) : ranks_.size(), -1);
  for (std::int32_t of_class = 0; of_class < classes; ++of_class) {
    const std::size_t part = part_of.try_emplace(find(of_class), parts_.size()).first->second;
    if (part == parts_.size()) {
      parts_.emplace_back();
    }
    parts_[part].ranks.push_back(fold.representative[index(of_class)]);
    part_of_[index(fold.representative[index(of_class)])] = static_cast<std::int32_t>(part);
  }
  part_of_communicator_.clear();
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    const std::size_t part = part_of.at(find(fold.communicators[c].classes.front()));
    parts_[part].communicators.push_back(static_cast<std::int32_t>(c));
    part_of_communicator_.push_back(static_cast<std::int32_t>(part));
  }
  for (std::size_t t = 0; teams_ && t < teams_->teams().size(); ++t) {
    const std::int32_t rank = teams_->teams()[t].ranks.front();
    parts_[index(part_of_[index(rank)])].teams.push_back(static_cast<std::int32_t>(t));
  }
}

/// Begins to look at ranks, which stand where they begin in this phase.
void ReplayRun::watch_ranks() {
  anchor_left_.assign(parts_.empty() ? 0 : ranks_.size(), 0);
  for (const RepeatingPart& part : parts_) {
    for (std::size_t i = 0; i < part.ranks.size(); ++i) {
      if (i % kWatched == 0) {
        look_after(part.ranks[i], period_of_rank(part.ranks[i]).length);
      }
    }
  }
}

const ProgramPeriod& ReplayRun::period_of_rank(std::int32_t r) const {
  return (*periods_)[index(work_.program_of_rank[index(r)])];
}

/// When so many of its operations more have ended.
void ReplayRun::look_after(std::int32_t r, std::int32_t ops) {
  RankState& rank = at(r);
  const auto count = static_cast<std::size_t>(ops);
  rank.look_below = ops > 0 && rank.left > count ? rank.left - count + 1 : 0;
}

/// Ranks have come round: their parts are compared at the next moment at which nothing is on the
/// wire, if that comes soon.
void ReplayRun::look_for_repetition() {
  for (const std::int32_t r : std::exchange(came_round_, {})) {
    RepeatingPart& part = parts_[index(part_of_[index(r)])];
    if (part.over) {
      continue;
    }
    const std::int32_t length = period_of_rank(r).length;
    if (r != part.anchor) {
      // The anchor is one that moves: what comes round while it does not takes its place.
      const std::size_t stood = part.anchor < 0 ? 0 : at(part.anchor).left;
      if (part.anchor >= 0 && std::exchange(anchor_left_[index(r)], stood) != stood) {
        look_after(r, length);
        continue;
      }
      if (part.anchor >= 0) {
        look_after(part.anchor, period_of_rank(part.anchor).length);
      }
      part.anchor = r;
      part.look_anew();
    }
    wanted_ += part.tries == 0 ? 1 : 0;
    part.tries = kTries;
    look_after(r, length * (1 + part.looks / kSeveral));
  }
  for (std::size_t number = 0; wanted_ > 0 && number < parts_.size(); ++number) {
    RepeatingPart& part = parts_[number];
    if (part.tries == 0) {
      continue;
    }
    const bool now = withdrawn_.empty() &&
                     folded_->rests(part_of_communicator_, static_cast<std::int32_t>(number));
    part.tries = now ? 0 : part.tries - 1;
    wanted_ -= part.tries == 0 ? 1 : 0;
    if (now) {
      compare(part);
    }
  }
}

void ReplayRun::compare(RepeatingPart& part) {
  ++part.looks;
  find_events(part);
  const std::uint64_t now = signature();
  const auto [seen, is_new] = part.seen.try_emplace(now, part.looks);
  const std::int32_t period = part.looks - std::exchange(seen->second, part.looks);
  if (part.kept && now != part.kept_signature && part.looks < part.kept_until) {
    return;
  }
  if (is_new) {
    part.kept.reset();
    return;
  }
  Standing standing = save(part);
  if (!standing.comparable()) {
    return;
  }
  const std::size_t anchor = index(part.anchor);
  if (part.kept && now == part.kept_signature &&
      (standing.done[anchor] - part.kept->done[anchor]) % period_of_rank(part.anchor).length == 0 &&
      standing.repeats(*part.kept, moved_) && skip_turns(part, standing)) {
    part.look_anew();
    return;
  }
  part.kept = std::move(standing);
  part.kept_signature = now;
  part.kept_until = part.looks + 2 * period;
}

/// What is to come for its ranks, in its order.
void ReplayRun::find_events(const RepeatingPart& part) {
  part_events_.clear();
  has_events_.assign(ranks_.size(), 0);
  const std::int32_t number = part_of_[index(part.ranks.front())];
  own_.for_each([&](const OwnEvent& event) {
    if (part_of_[index(event.rank)] == number) {
      part_events_.push_back(event);
      has_events_[index(event.rank)] = 1;
    }
  });
  std::ranges::sort(part_events_, [](const OwnEvent& a, const OwnEvent& b) { return b > a; });
}

/// Of these events: equal where they are, relative to now and to what their ranks have done.
std::uint64_t ReplayRun::signature() const {
  std::uint64_t hash = part_events_.size();
  for (const OwnEvent& event : part_events_) {
    const auto left = static_cast<std::int64_t>(ranks_[index(event.rank)].left);
    for (const std::int64_t part :
         {std::int64_t{event.rank}, (event.when - now_).count_ps(), event.op + left}) {
      hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

/// PRECONDITION: find_events().
Standing ReplayRun::save(const RepeatingPart& part) {
  Standing standing;
  standing.now = now_;
  standing.done.assign(ranks_.size(), 0);
  standing.next.assign(ranks_.size(), 0);
  for (const std::int32_t r : part.ranks) {
    standing.done[index(r)] = static_cast<std::int32_t>(work_.program(r).ops().size() - at(r).left);
  }
  standing.values.reserve(part.kept ? part.kept->values.size() : 0);
  standing.begin_block();
  standing.relative();
  bool may_move = true;
  for (const OwnEvent& event : part_events_) {
    standing.add(event.rank);
    standing.add(event.when - now_);
    standing.add(event.op - standing.done[index(event.rank)]);
    may_move = may_move && event.op >= 0;
  }
  standing.end_block(part_events_.empty(), may_move);
  for (const std::int32_t r : part.ranks) {
    save_rank(r, standing);
  }
  for (const std::int32_t t : part.teams) {
    save_team(t, standing);
  }
  folded_->save(part.communicators, standing);
  return standing;
}

void ReplayRun::save_rank(std::int32_t r, Standing& standing) {
  const RankState& rank = at(r);
  const Program& program = work_.program(r);
  const ProgramPeriod& period = period_of_rank(r);
  const std::int32_t done = standing.done[index(r)];
  standing.begin_block();
  standing.add(static_cast<std::int64_t>(rank.left));
  for (const RankState::Stream& stream : rank.streams) {
    standing.add(stream.next);
    standing.add(stream.busy ? 1 : 0);
  }
  standing.add(rank.told);
  standing.relative();
  std::int32_t& first = standing.next[index(r)] = static_cast<std::int32_t>(program.ops().size());
  std::int64_t plain = -1;
  for (std::size_t s = 0; s < rank.streams.size(); ++s) {
    const RankState::Stream& stream = rank.streams[s];
    const auto ops = program.stream_ops(static_cast<std::int32_t>(s));
    const bool over = index(stream.next) >= ops.size();
    const std::int32_t next = over ? -1 : ops[index(stream.next)];
    // Streams that the period has no operation on stay where they are.
    const bool moves = !over && next < period.end;
    standing.add(moves ? next - done : std::int64_t{INT32_MAX} + next);
    standing.add(stream.busy ? 1 : 0);
    if (stream.busy) {
      const std::int32_t running = ops[index(stream.next) - 1];
      standing.add(moves ? running - done : std::int64_t{INT32_MAX} + running);
    }
    first = over ? first : std::min(first, next);
    if (!over && rank.plain >= next &&
        op_of(r, rank.plain).stream == static_cast<std::int32_t>(s)) {
      plain = rank.plain - done;
    }
  }
  standing.add(plain);
  standing.add(rank.told >= 0 ? 1 : 0);
  standing.end_block(has_events_[index(r)] == 0, true);
}

void ReplayRun::save_team(std::int32_t number, Standing& standing) {
  const StretchTeams::Team& team = teams_->teams()[index(number)];
  standing.begin_block();
  standing.add(team.rest > now_ ? team.rest : Time());
  for (const std::int32_t each : team.under_way) {
    const StretchRun& run = stretch_runs_[index(each)];
    standing.add(each);
    standing.add(run.to_enter);
    standing.add(run.to_end);
    standing.add(run.first);
  }
  standing.relative();
  standing.add(team.rest > now_ ? team.rest - now_ : Time());
  for (const std::int32_t each : team.under_way) {
    const StretchRun& run = stretch_runs_[index(each)];
    standing.add(run.kind->number);
    standing.add(run.to_enter);
    standing.add(run.to_end);
    standing.add(run.first - now_);
    standing.add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(run.outcome)));
    for (std::size_t place = 0; place < run.ranks.size(); ++place) {
      standing.add(run.stretch->first - standing.done[index(run.ranks[place])]);
      standing.add(run.entry[place] == Time::max() ? run.entry[place] : run.entry[place] - now_);
    }
  }
  standing.end_block(team.rest <= now_, true);
}

/// How often the part can do again what it has done since; then it stands there. Whether it did.
bool ReplayRun::skip_turns(RepeatingPart& part, const Standing& standing) {
  const Standing& before = *part.kept;
  const Time turn = standing.now - before.now;
  std::int64_t turns = INT32_MAX;
  bool moves = false;
  for (std::size_t i = 0; i < part.ranks.size(); ++i) {
    const std::int32_t r = part.ranks[i];
    const std::int32_t by = standing.done[index(r)] - before.done[index(r)];
    if (by == 0) {
      continue;
    }
    const ProgramPeriod& period = period_of_rank(r);
    // All that it touched, touches until then, and looks at next is alike the next time.
    const std::int32_t around = period.reach + 2 * period.length;
    std::int32_t last = standing.next[index(r)];
    for (std::size_t s = 0; s < at(r).streams.size(); ++s) {
      const auto ops = work_.program(r).stream_ops(static_cast<std::int32_t>(s));
      const auto next = index(at(r).streams[s].next);
      if (next < ops.size() && ops[next] < period.end) {
        last = std::max(last, ops[next]);
      }
    }
    if (period.length == 0 || by % period.length != 0 ||
        before.next[index(r)] - around < period.begin) {
      return false;
    }
    turns = std::min<std::int64_t>(turns, (period.end - around - last) / by);
    moves = true;
  }
  if (!moves || turn <= Time()) {
    return false;
  }
  if (turns < 1) {
    part.over = true;
    return false;
  }
  const Time until = others_reach_the_next_phase(part);
  if (until < Time::max()) {
    turns = std::min(turns, (until - now_).count_ps() / turn.count_ps());
  }
  if (turns < 1) {
    return false;
  }
  const Time by = Time::ps(turn.count_ps() * turns);
  std::vector<std::int32_t> shift(ranks_.size(), 0);
  for (const std::int32_t r : part.ranks) {
    shift[index(r)] =
        static_cast<std::int32_t>(turns) * (standing.done[index(r)] - before.done[index(r)]);
  }
  // In the order of save().
  const std::size_t ranks = part.ranks.size(), teams = part.teams.size();
  for (std::size_t i = 0; i < teams; ++i) {
    if (moved_[1 + ranks + i] != 0) {
      move_team(part.teams[i], by, shift);
    }
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::int32_t r = part.ranks[i];
    if (shift[index(r)] > 0) {
      move_rank(r, standing.next[index(r)], standing.done[index(r)] - before.done[index(r)], turn,
                shift[index(r)]);
    }
  }
  if (moved_[0] != 0) {
    const std::int32_t number = part_of_[index(part.ranks.front())];
    own_.change([&](OwnEvent& event) {
      if (part_of_[index(event.rank)] == number) {
        event.when += by;
        event.op += shift[index(event.rank)];
      }
    });
  }
  std::vector<std::int64_t> collectives;
  for (std::size_t i = 0; i < standing.collectives.size(); ++i) {
    collectives.push_back(turns * (standing.collectives[i] - before.collectives[i]));
  }
  folded_->skip(part.communicators, std::span(moved_).subspan(1 + ranks + teams), collectives, by,
                shift);
  return true;
}

/// By so many operations, as often as they are more than `turn_ops`, which take `turn`.
void ReplayRun::move_rank(std::int32_t r, std::int32_t first, std::int32_t turn_ops, Time turn,
                          std::int32_t by) {
  RankState& rank = at(r);
  const Program& program = work_.program(r);
  const ProgramPeriod& period = period_of_rank(r);
  std::int32_t oldest = first, last = first;  // that has not ended; that was started or is next
  std::vector<std::int32_t> not_started(rank.streams.size(), INT32_MAX);  // the first of a stream
  std::vector<std::int32_t> running(rank.streams.size(), -1);
  for (std::size_t s = 0; s < rank.streams.size(); ++s) {
    RankState::Stream& stream = rank.streams[s];
    const auto ops = program.stream_ops(static_cast<std::int32_t>(s));
    if (index(stream.next) >= ops.size() || ops[index(stream.next)] >= period.end) {
      continue;
    }
    const std::int32_t next = not_started[s] = ops[index(stream.next)];
    last = std::max(last, next);
    if (stream.busy) {
      running[s] = ops[index(stream.next) - 1];
      oldest = std::min(oldest, running[s]);
    }
    stream.next = static_cast<std::int32_t>(std::ranges::lower_bound(ops, next + by) - ops.begin());
  }
  // What has happened stays: an operation may have begun, or ended, before the turns that are
  // alike.
  for (std::int32_t op = oldest; !rank.traced.empty() && op <= last + by; ++op) {
    const std::size_t stream = index(program.ops()[index(op)].stream);
    const OpTiming& earlier = rank.timing[index(op - turn_ops)];
    OpTiming& timing = rank.timing[index(op)];
    if (op >= not_started[stream]) {
      timing = {rank.waits[op] > 0 ? earlier.ready + turn : timing.ready, earlier.begin + turn,
                earlier.end + turn, earlier.moved + turn};
    } else if (op == running[stream]) {
      timing.begin = in_stretch(r, op + by) ? earlier.begin + turn : timing.begin;
      timing.end = earlier.end + turn;
      const bool computes = program.ops()[index(op)].comm == CommType::kNone;
      timing.moved = computes ? timing.begin : earlier.moved + turn;
    }
  }
  rank.waits.move(first, last + period.reach + 1, by);
  rank.plain += rank.plain >= first ? by : 0;
  rank.left -= index(by);
  done_ops_ += by;
}

/// Whether a rank has got to the stretch that begins with this operation, and is not through it.
bool ReplayRun::in_stretch(std::int32_t r, std::int32_t op) {
  for (const StretchTeams::Team& team : teams_->teams()) {
    for (const std::int32_t each : team.under_way) {
      const StretchRun& run = stretch_runs_[index(each)];
      if (run.stretch->first == op && std::ranges::find(run.ranks, r) != run.ranks.end()) {
        return run.entry[run.place_of(r)] < Time::max();
      }
    }
  }
  return false;
}

void ReplayRun::move_team(std::int32_t number, Time by, std::span<const std::int32_t> shift) {
  StretchTeams::Team& team = teams_->teams()[index(number)];
  team.rest += team.rest > now_ ? by : Time();
  for (const std::int32_t each : team.under_way) {
    StretchRun& run = stretch_runs_[index(each)];
    const std::int32_t rank = run.ranks.front();
    run.stretch = stretches_->starting(work_.program_of_rank[index(rank)],
                                       run.stretch->first + shift[index(rank)]);
    LOCKSTEP_CHECK(run.stretch != nullptr, "periods have the same stretches");
    run.first += by;
    for (Time& entry : run.entry) {
      entry += entry == Time::max() ? Time() : by;
    }
  }
}

/// Not before then: the other parts have whole turns of computations to do until they get there.
Time ReplayRun::others_reach_the_next_phase(const RepeatingPart& part) {
  if (folds_.size() > 1 || folder_->phases() < 2) {
    return Time::max();
  }
  Time earliest = Time::max();
  for (const RepeatingPart& other : parts_) {
    for (const std::int32_t r : other.ranks) {
      if (&other != &part) {
        earliest = std::min(earliest, reaches_the_next_phase(r));
      }
    }
  }
  return earliest;
}

/// The first computation of its program after which a communication of the next phase may come.
std::int32_t ReplayRun::lead_of(std::int32_t r) {
  std::vector<std::int32_t>& leads =
      folder_->kept() != nullptr ? folder_->kept()->leads : leads_to_next_;
  leads.resize(work_.programs.size(), kUnknown);
  const Program& program = work_.program(r);
  std::int32_t& lead = leads[index(work_.program_of_rank[index(r)])];
  if (lead == kUnknown) {
    lead = kNever;
    std::map<std::int32_t, std::int32_t> last_before;  // of each stream's first of the next phase
    for (std::size_t s = 0; s < program.streams().size(); ++s) {
      std::int32_t before = -1;
      for (const std::int32_t op : program.stream_ops(static_cast<std::int32_t>(s))) {
        if (program.ops()[index(op)].comm != CommType::kNone && folded_->is_later(r, op)) {
          last_before.emplace(op, before);
          break;
        }
        before = op;
      }
    }
    for (std::int32_t op = 0; op < std::ssize(program.ops()) && !last_before.empty(); ++op) {
      for (const std::int32_t next : program.successors(op)) {
        if (const auto found = last_before.find(next); found != last_before.end()) {
          found->second = std::max(found->second, op);
        }
      }
    }
    for (const auto& [op, before] : last_before) {
      lead = std::min(lead, computation_before(program, before));
    }
  }
  return lead;
}

Time ReplayRun::reaches_the_next_phase(std::int32_t r) {
  const Program& program = work_.program(r);
  const ProgramPeriod& period = period_of_rank(r);
  const std::int32_t lead = lead_of(r);
  if (lead == kNever) {
    return Time::max();
  }
  if (lead < 0 || period.length == 0) {
    return now_;
  }
  // All on its stream come before it.
  const std::int32_t stream = program.ops()[index(lead)].stream;
  const auto ops = program.stream_ops(stream);
  const auto at_next = index(at(r).streams[index(stream)].next);
  if (at_next >= ops.size()) {
    return now_;
  }
  const std::int32_t from = std::max(ops[at_next], period.begin);
  const std::int32_t turns = (std::min(lead, period.end) - from) / period.length - 1;
  if (turns < 1) {
    return now_;
  }
  return now_ + Time::ps(turn_of(r).count_ps() * turns);
}

/// The computations of one period on the stream that leads to the next phase, all of which are
/// steady.
Time ReplayRun::turn_of(std::int32_t r) {
  turn_of_.resize(ranks_.size());
  Time& turn = turn_of_[index(r)];
  if (turn == Time()) {
    const Program& program = work_.program(r);
    const ProgramPeriod& period = period_of_rank(r);
    const std::int32_t stream = program.ops()[index(lead_of(r))].stream;
    for (std::int32_t op = period.begin; op < period.begin + period.length; ++op) {
      const ProgramOp& what = program.ops()[index(op)];
      if (what.stream == stream && what.comm == CommType::kNone) {
        turn += duration(r, op, now_);
      }
    }
  }
  return turn;
}

}  // namespace lockstep
