#include "simulator/replay/folded_runs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "simulator/network/flow/path_finder.h"

namespace lockstep {
namespace {

/// Entries after which a session is no more recorded: so many, or four times its places.
constexpr std::size_t kLongSession = 64;

std::int64_t code_of(std::int32_t run, std::int32_t place) {
  return std::int64_t{run} << 32 | place;
}

}  // namespace

FoldedRuns::FoldedRuns(const RankPrograms& work, const StepFold& fold, SessionStore& sessions,
                       Finished finished)
    : work_(work),
      fold_(fold),
      sessions_(sessions),
      finished_(std::move(finished)),
      known_(sessions.communicators_of(fold)) {
  owner_.assign(fold.graph.capacity.size(), -1);
  for (SessionKind* kind : known_->kind) {
    communicators_.emplace_back().kind = kind;
  }
}

FoldedRuns::FoldedRuns(const FoldedRuns& like, Finished finished)
    : work_(like.work_),
      fold_(like.fold_),
      sessions_(like.sessions_),
      finished_(std::move(finished)),
      known_(like.known_),
      communicators_(like.communicators_),
      owner_(like.owner_.size(), -1) {
  for (Communicator& each : communicators_) {
    each.island = -1;
    each.runs = 0;
    each.open.clear();
  }
}

void FoldedRuns::restart(std::span<const std::int32_t> communicators, Time now) {
  LOCKSTEP_CHECK(free_.size() == islands_.size() && told_.empty(), "nothing is under way");
  due_.clear();
  now_ = last_change_ = now;
  transfers_ = 0;
  for (const std::int32_t each : communicators) {
    communicators_[at(each)].runs = 0;
  }
}

void FoldedRuns::take_over(FoldedRuns& from, std::span<const std::int32_t> communicators) {
  for (const std::int32_t each : communicators) {
    communicators_[at(each)].runs += std::exchange(from.communicators_[at(each)].runs, 0);
    const std::int32_t theirs = from.communicators_[at(each)].island;
    if (theirs < 0 || communicators_[at(each)].island >= 0) {
      continue;  // nothing, or with another one
    }
    const std::int32_t index = new_island();
    Island& island = *islands_[at(index)];
    const std::uint32_t version = island.version;
    std::swap(island, *from.islands_[at(theirs)]);
    island.version = version;
    for (const std::int32_t moved : island.communicators) {
      communicators_[at(moved)].island = index;
      communicators_[at(moved)].open = std::exchange(from.communicators_[at(moved)].open, {});
      from.communicators_[at(moved)].island = -1;
      for (const std::int32_t constraint : constraints(moved)) {
        if (std::exchange(from.owner_[at(constraint)], -1) == theirs) {
          owner_[at(constraint)] = index;
        }
      }
    }
    schedule(index, island.simulation ? island.simulation->next() : next_on_memo(island));
    from.free_.push_back(theirs);
  }
  transfers_ += std::exchange(from.transfers_, 0);
}

void FoldedRuns::count(std::int32_t communicator) {
  ++communicators_[at(communicator)].runs;
  transfers_ += known_->transfers[at(communicator)];
}

bool FoldedRuns::idle(std::span<const std::int32_t> communicators) const {
  return std::ranges::all_of(communicators, [&](std::int32_t each) {
    const Communicator& communicator = communicators_[at(each)];
    return communicator.island < 0 &&
           std::ranges::all_of(constraints(each),
                               [&](std::int32_t constraint) { return owner_[at(constraint)] < 0; });
  });
}

std::int32_t FoldedRuns::communicator_of(std::int32_t rank, std::int32_t op) const {
  const auto program = at(work_.program_of_rank[at(rank)]);
  const std::int32_t kind = fold_.facts->kind_of_op[program][at(op)];
  return fold_.communicator_of[at(fold_.class_of_rank[at(rank)])][at(kind)];
}

void FoldedRuns::enter(std::int32_t rank, std::int32_t op_index, Time now) {
  const std::int32_t communicator = communicator_of(rank, op_index);
  if (communicator < 0) {
    LOCKSTEP_CHECK(communicator == StepFold::kAlone, "what comes later is not entered");
    finished_(rank, op_index, now);
    return;
  }
  const std::int32_t index = settle(communicator, rank, now);
  Island& island = *islands_[at(index)];
  const ProgramOp& op = work_.program(rank).ops()[at(op_index)];
  std::int32_t run = -1;
  for (const std::int32_t each : communicators_[at(communicator)].open) {
    run = island.runs[at(each)].sequence == op.sequence ? each : run;
  }
  run = run >= 0 ? run : open_run(island, communicator, op.sequence);
  const std::int32_t place = place_of(communicator, rank);
  island.runs[at(run)].op[at(place)] = op_index;
  Time& moved = island.runs[at(run)].moved;
  moved = op.sets_off() ? now : moved;
  put_in(index, run, place, now);
}

std::int32_t FoldedRuns::place_of(std::int32_t communicator, std::int32_t rank) const {
  const auto& classes = fold_.communicators[at(communicator)].classes;
  return static_cast<std::int32_t>(
      std::ranges::lower_bound(classes, fold_.class_of_rank[at(rank)]) - classes.begin());
}

/// Its slots start when it has entered. Those of switches may whenever somebody has.
std::span<const std::int32_t> FoldedRuns::reach(std::int32_t communicator, std::int32_t rank) {
  const CommunicatorShape& shape = communicators_[at(communicator)].kind->shape;
  const std::span<const std::int32_t> named = constraints(communicator);
  if (shape.has_switches) {
    return named;
  }
  reach_.clear();
  for (const std::int32_t slot : shape.slots_from(at(place_of(communicator, rank)))) {
    for (const MaxMin::Term& term : shape.terms(at(slot))) {
      reach_.push_back(named[term.constraint.index()]);
    }
  }
  return reach_;
}

void FoldedRuns::put_in(std::int32_t index, std::int32_t run, std::int32_t place, Time now) {
  Island& island = *islands_[at(index)];
  if (!island.simulation && !island.recording) {
    simulate(island, now, now);
  }
  if (island.recording) {
    SessionMemo& memo = communicators_[at(island.communicators[0])].kind->memo;
    const bool rests = memo.node(island.node).rests;
    island.base = rests ? now : island.base;
    const Time when = now - island.base;
    if (!island.simulation) {
      const std::int32_t next = memo.find(island.node, when, code_of(run, place));
      if (next >= 0) {
        island.node = next;
        island.log.push_back({now, run, place});
        schedule(index, next_on_memo(island));
        return;
      }
      simulate(island, now, now);
    }
    memo.stay_quiet(island.node, when);
    const std::size_t nodes = memo.size();
    island.node = memo.enter(island.node, when, code_of(run, place));
    sessions_.resized(nodes, memo.size());
    island.log.push_back({now, run, place});
    island.recording =
        !sessions_.full() &&
        island.log.size() < std::max(kLongSession, 4 * island.runs[at(run)].op.size());
  }
  IslandSimulation& simulation = *island.simulation;
  if (run == simulation.runs()) {
    simulation.open(static_cast<std::int32_t>(
        std::ranges::find(island.communicators, island.runs[at(run)].communicator) -
        island.communicators.begin()));
  }
  simulation.enter(run, place, now);
  const Time next = simulation.next();
  if (island.recording && next == Time::max()) {
    communicators_[at(island.communicators[0])].kind->memo.rest(island.node);
  }
  schedule(index, next);
}

/// Brings a session that followed its memo to where it stands: all entries so far, then up to
/// `until`. What finishes on the way and has not been told yet finishes next.
void FoldedRuns::simulate(Island& island, Time now, Time until) {
  SessionKind& kind = *communicators_[at(island.communicators[0])].kind;
  if (kind.idle.empty()) {
    auto fresh = std::make_unique<IslandSimulation>();
    std::vector<std::int32_t> names(kind.shape.capacity.size());
    std::iota(names.begin(), names.end(), 0);
    fresh->add(kind.shape, names, kind.lone_times());
    kind.idle.push_back(std::move(fresh));
  }
  island.simulation = std::move(kind.idle.back());
  kind.idle.pop_back();
  island.pooled = true;
  IslandSimulation& simulation = *island.simulation;
  simulation.begin(island.log.empty() ? now : island.log.front().when);
  finishes_.clear();
  for (const Entry& entry : island.log) {
    simulation.advance(entry.when, finishes_);
    if (entry.run == simulation.runs()) {
      simulation.open(0);
    }
    simulation.enter(entry.run, entry.place, entry.when);
  }
  simulation.advance(until, finishes_);
  for (const IslandSimulation::Finish& finish : finishes_) {
    if (island.runs[at(finish.run)].op[at(finish.place)] != kFinished) {
      simulation.hold(finish);
    }
  }
}

Time FoldedRuns::next_on_memo(const Island& island) const {
  const SessionMemo::Node& node =
      communicators_[at(island.communicators[0])].kind->memo.node(island.node);
  if (node.known) {
    return node.when < Time::max() ? island.base + node.when : Time::max();
  }
  return island.base + node.quiet + Time::ps(1);
}

void FoldedRuns::process(std::int32_t index, Time now) {
  Island& island = *islands_[at(index)];
  if (island.simulation) {
    sessions_.moment();
  }
  if (!island.simulation) {
    SessionMemo& memo = communicators_[at(island.communicators[0])].kind->memo;
    const SessionMemo::Node node = memo.node(island.node);
    if (node.known) {
      // Else it came to be known since this was scheduled, from a session beside it: not yet due.
      if (next_on_memo(island) <= now) {
        island.node = node.after;
        for (const std::int64_t code : memo.finishes(node)) {
          tell(island, static_cast<std::int32_t>(code >> 32),
               static_cast<std::int32_t>(code & 0xFFFFFFFF));
        }
      }
      if (island.open.empty() && memo.node(island.node).rests) {
        close(index);
      } else {
        schedule(index, next_on_memo(island));
      }
      return;
    }
    simulate(island, now, now - Time::ps(1));
  }
  finishes_.clear();
  island.simulation->advance(now, finishes_);
  std::erase_if(finishes_, [&](const IslandSimulation::Finish& finish) {
    return island.runs[at(finish.run)].op[at(finish.place)] == kFinished;  // told by the memo
  });
  if (island.recording) {
    SessionMemo& memo = communicators_[at(island.communicators[0])].kind->memo;
    const bool rests = island.simulation->next() == Time::max();
    const std::size_t nodes = memo.size();
    if (!finishes_.empty() || rests) {  // to come to rest is something that happens, too
      codes_.clear();
      for (const IslandSimulation::Finish& finish : finishes_) {
        codes_.push_back(code_of(finish.run, finish.place));
      }
      island.node = memo.finish(island.node, now - island.base, codes_);
    }
    sessions_.resized(nodes, memo.size());
    if (rests) {
      memo.rest(island.node);
    }
  }
  for (const IslandSimulation::Finish& finish : finishes_) {
    tell(island, finish.run, finish.place);
  }
  if (!island.pooled && island.run_count >= island.forget_at) {
    forget_over(island);
  }
  const Time next = island.simulation->next();
  if (island.open.empty() && next == Time::max()) {
    close(index);
  } else {
    schedule(index, next);
  }
}

void FoldedRuns::tell(Island& island, std::int32_t run_index, std::int32_t place) {
  Run& run = island.runs[at(run_index)];
  const std::int32_t of_class = fold_.communicators[at(run.communicator)].classes[at(place)];
  told_.push_back({fold_.representative[at(of_class)], run.op[at(place)], run.moved});
  run.op[at(place)] = kFinished;
  if (--run.unfinished == 0) {
    std::erase(island.open, run_index);
    std::erase(communicators_[at(run.communicator)].open, run_index);
    count(run.communicator);
  }
}

void FoldedRuns::schedule(std::int32_t index, Time when) {
  Island& island = *islands_[at(index)];
  ++island.version;
  island.due = when;
  if (when < Time::max()) {
    due_.push({when, index, island.version});
  }
}

Time FoldedRuns::advance(Time limit) {
  while (!due_.empty()) {
    const Due due = due_.top();
    if (islands_[at(due.island)]->version != due.version) {
      due_.pop();
      continue;
    }
    if (due.when > limit || (due.when > now_ && !told_.empty())) {
      break;
    }
    now_ = last_change_ = due.when;
    due_.pop();
    process(due.island, now_);
  }
  if (told_.empty() && limit < Time::max()) {
    now_ = std::max(now_, limit);
  }
  return now_;
}

void FoldedRuns::dispatch(Time) {
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const ToldEnd end = told_[i];  // more may be told meanwhile
    finished_(end.rank, end.op, end.moved);
  }
  told_.clear();
}

void FoldedRuns::scale_capacity(PortId port, double share) {
  const auto found = fold_.constraint_of_port.find(port.value);
  if (found == fold_.constraint_of_port.end()) {
    return;  // it limits nothing, whatever it has left
  }
  const std::int32_t constraint = found->second;
  const double capacity = fold_.graph.capacity[at(constraint)] * share;
  std::int32_t changed = -1;
  for (std::size_t c = 0; c < communicators_.size(); ++c) {
    Communicator& communicator = communicators_[c];
    const std::span<const std::int32_t> named = constraints(static_cast<std::int32_t>(c));
    const auto place = std::ranges::find(named, constraint);
    if (place == named.end()) {
      continue;
    }
    const auto local = static_cast<std::int32_t>(place - named.begin());
    if (communicator.island >= 0 && communicator.island != changed) {
      changed = communicator.island;
      Island& island = *islands_[at(changed)];
      if (!island.simulation) {
        simulate(island, now_, now_);
      }
      // Its clock stands where something happened there last.
      finishes_.clear();
      island.simulation->advance(now_, finishes_);
      for (const IslandSimulation::Finish& finish : finishes_) {
        island.simulation->hold(finish);
      }
      island.recording = false;
      leave_pool(island);
      island.simulation->set_capacity(constraint, capacity);
      schedule(changed, island.simulation->next());
    }
    CommunicatorShape shape = communicator.kind->shape;
    shape.capacity[at(local)] = capacity;
    communicator.kind = sessions_.kind_of(std::move(shape));
  }
}

std::vector<std::int32_t> FoldedRuns::missing(std::int32_t rank, std::int32_t op) const {
  std::vector<std::int32_t> ranks;
  const std::int32_t communicator = communicator_of(rank, op);
  const std::int32_t sequence = work_.program(rank).ops()[at(op)].sequence;
  if (communicator < 0 || communicators_[at(communicator)].island < 0) {
    return ranks;
  }
  const Island& island = *islands_[at(communicators_[at(communicator)].island)];
  for (const std::int32_t index : island.open) {
    const Run& run = island.runs[at(index)];
    if (run.communicator != communicator || run.sequence != sequence) {
      continue;
    }
    for (std::size_t place = 0; place < run.op.size(); ++place) {
      if (run.op[place] == kNotEntered) {
        const std::int32_t missed = fold_.communicators[at(communicator)].classes[place];
        ranks.push_back(fold_.representative[at(missed)]);
      }
    }
  }
  return ranks;
}

std::vector<double> FoldedRuns::carried_bits() const {
  std::vector<double> bits(fold_.graph.slots.size());
  for (std::size_t c = 0; c < communicators_.size(); ++c) {
    for (const std::int32_t slot : fold_.communicators[c].slots) {
      const FlowGraph::Slot& what = fold_.graph.slots[at(slot)];
      bits[at(slot)] = what.bits * what.count * static_cast<double>(communicators_[c].runs);
    }
  }
  return bits;
}

void add_port_bits(const StepFold& fold, const std::vector<double>& carried_bits,
                   const Topology& topology, const FlowOptions& flow, std::vector<double>& bits) {
  const std::vector<Way>& each = fold.ways->each();
  std::vector<double> carried(each.size());
  for (std::size_t i = 0; i < fold.slot_of.size(); ++i) {
    carried[at(fold.ways->of()[i])] += carried_bits[at(fold.slot_of[i])];
  }
  PathFinder paths(topology, flow);
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (carried[i] > 0) {
      for (const MaxMin::Term& hop :
           paths.next(each[i].source, each[i].destination, each[i].channel).ports) {
        bits[hop.constraint.index()] += carried[i] * hop.coefficient;
      }
    }
  }
}

}  // namespace lockstep
