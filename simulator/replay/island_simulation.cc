#include "simulator/replay/island_simulation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {
namespace {

std::int32_t run_of(std::uint64_t tag) { return static_cast<std::int32_t>(tag >> 32); }

}  // namespace

void IslandSimulation::begin(Time now) {
  offset_ = network_.now() - now;
  for (Run& run : runs_) {
    retire(run);
  }
  runs_.clear();
  for (Communicator& communicator : communicators_) {
    communicator.runs.clear();
  }
  holder_.assign(holder_.size(), {});
  told_ = {};
  waiting_ = 0;
}

std::int32_t IslandSimulation::add(const CommunicatorShape& shape,
                                   std::span<const std::int32_t> constraints,
                                   const LoneTimes* lone) {
  std::vector<ConstraintId> id;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const auto [known, is_new] = constraint_.try_emplace(constraints[i]);
    if (is_new) {
      known->second = network_.add_constraint(shape.capacity[i]);
    }
    id.push_back(known->second);
  }
  std::vector<MaxMin::Term> terms;
  Communicator& added = communicators_.emplace_back(Communicator{&shape, -1, id, lone, {}});
  for (std::size_t slot = 0; slot < shape.slots.size(); ++slot) {
    terms.assign(shape.terms(slot).begin(), shape.terms(slot).end());
    for (MaxMin::Term& term : terms) {
      term.constraint = id[term.constraint.index()];
    }
    const ConnectionId connection = network_.connect(terms);
    added.first_connection = slot == 0 ? connection.value : added.first_connection;
  }
  if (tells_) {
    flows_.resize(constraint_.size(), 0);
    holder_.resize(constraint_.size());
  } else if (lone != nullptr) {
    begin_to_tell();
  }
  return static_cast<std::int32_t>(communicators_.size()) - 1;
}

void IslandSimulation::rename(std::span<const std::int32_t> constraints) {
  std::unordered_map<std::int32_t, ConstraintId> renamed;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    renamed.emplace(constraints[i], constraint_.at(static_cast<std::int32_t>(i)));
  }
  constraint_ = std::move(renamed);
}

/// Lone times know constraints as they were: none are told here from now on.
void IslandSimulation::set_capacity(std::int32_t constraint, double capacity) {
  simulate_all();
  for (Communicator& communicator : communicators_) {
    communicator.lone = nullptr;
  }
  if (const auto found = constraint_.find(constraint); found != constraint_.end()) {
    network_.set_capacity(found->second, capacity);
  }
}

std::int32_t IslandSimulation::open(std::int32_t communicator) {
  const std::int32_t index = add_run(communicator);
  if (communicators_[at(communicator)].lone != nullptr) {
    Run& run = runs_.back();
    run.told = new_told(run.left.size());
    run.told->to_enter = run.unfinished;
  }
  return index;
}

/// Keeps its memory.
void IslandSimulation::retire(Run& run) {
  if (run.told) {
    spare_told_.push_back(std::move(run.told));
  }
  if (!run.slots.empty()) {
    spare_.push_back(std::move(run));
  }
}

/// Nobody has entered.
std::unique_ptr<IslandSimulation::Told> IslandSimulation::new_told(std::size_t places) {
  std::unique_ptr<Told> told;
  if (spare_told_.empty()) {
    told = std::make_unique<Told>();
  } else {
    told = std::move(spare_told_.back());
    spare_told_.pop_back();
  }
  told->entry.assign(places, Time::max());
  told->finished.assign(places, 0);
  told->to_enter = 0;
  told->rest = Time();
  return told;
}

std::int32_t IslandSimulation::add_run(std::int32_t communicator) {
  const CommunicatorShape& shape = *communicators_[at(communicator)].shape;
  Run& run = runs_.emplace_back();
  if (!spare_.empty()) {
    run = std::move(spare_.back());
    spare_.pop_back();
  }
  run.communicator = communicator;
  run.left = shape.shares;
  run.entered.assign(shape.shares.size(), 0);
  run.slots.assign(shape.slots.size(), {});
  run.unfinished = static_cast<std::int32_t>(shape.shares.size());
  const auto index = static_cast<std::int32_t>(runs_.size()) - 1;
  communicators_[at(communicator)].runs.push_back(index);
  return index;
}

void IslandSimulation::enter(std::int32_t run, std::int32_t place, Time now) {
  if (network_.now() < now + offset_) {
    handle_until(now);
  }
  if (runs_[at(run)].told ? enter_told(run, place, now) : tell_again(run, place, now)) {
    return;
  }
  runs_[at(run)].entered[at(place)] = 1;
  for (const std::int32_t slot : shape_of(runs_[at(run)]).slots_from(at(place))) {
    start_ready(run, slot);
  }
  if (runs_[at(run)].left[at(place)] == 0) {
    share_done(run, place, 0);
  }
}

/// Starts the slot's next transfers as far as what they wait for has arrived.
void IslandSimulation::start_ready(std::int32_t run_index, std::int32_t slot_index) {
  Run& run = runs_[at(run_index)];
  const CommunicatorShape& shape = shape_of(run);
  const CommunicatorShape::Slot& slot = shape.slots[at(slot_index)];
  SlotState& state = run.slots[at(slot_index)];
  const ConnectionId connection(communicators_[at(run.communicator)].first_connection + slot_index);
  for (; state.started < slot.count; ++state.started) {
    bool forwards = false;
    for (const SlotWait& wait : shape.waits(at(slot_index))) {
      const std::int32_t needed = wait.needed(state.started, shape.slots[at(wait.slot)].count);
      if (run.slots[at(wait.slot)].delivered < needed) {
        return;
      }
      forwards = forwards || needed > 0;
    }
    if (tells_) {
      make_way(run, slot_index);
      count_flows(run, slot_index, +1);
    }
    network_.start(connection, slot.bits, slot.latency,
                   network_.now() + (forwards ? slot.forward_latency : slot.start_latency),
                   tag_of(run_index, slot_index));
  }
}

void IslandSimulation::handle(const NetworkEvent& event) {
  const std::int32_t run_index = run_of(event.tag), slot_index = slot_of_tag(event.tag);
  const CommunicatorShape& shape = shape_of(runs_[at(run_index)]);
  const CommunicatorShape::Slot& slot = shape.slots[at(slot_index)];
  SlotState& state = runs_[at(run_index)].slots[at(slot_index)];
  if (event.kind == NetworkEvent::Kind::kSent) {
    ++state.sent;
    if (tells_) {
      count_flows(runs_[at(run_index)], slot_index, -1);
    }
    if (slot.source >= 0) {
      share_done(run_index, slot.source, slot.leave);
    }
    return;
  }
  ++state.delivered;
  for (const std::int32_t next : shape.waiters(at(slot_index))) {
    const std::int32_t source = shape.slots[at(next)].source;
    if (source < 0 || runs_[at(run_index)].entered[at(source)] != 0) {
      start_ready(run_index, next);
    }
  }
  if (slot.destination >= 0) {
    share_done(run_index, slot.destination, slot.reach);
  }
}

void IslandSimulation::share_done(std::int32_t run_index, std::int32_t place, std::int32_t count) {
  Run& run = runs_[at(run_index)];
  run.left[at(place)] -= count;
  if (run.left[at(place)] > 0 || run.entered[at(place)] == 0) {
    return;
  }
  finished_.push_back({run_index, place});
  --run.unfinished;
}

Time IslandSimulation::next() {
  if (!finished_.empty()) {
    return now();
  }
  while (!told_.empty() && !is_open(told_.top())) {
    told_.pop();
  }
  const Time next = network_.next_change();
  return std::min({next < Time::max() ? next - offset_ : next,
                   told_.empty() ? Time::max() : told_.top().when,
                   waiting_ > 0 && rest_ > now() ? rest_ : Time::max()});
}

void IslandSimulation::handle_until(Time to) {
  do {
    events_.clear();
    network_.advance(to + offset_, events_);
    for (const NetworkEvent& event : events_) {
      handle(event);
    }
  } while (!events_.empty());
}

void IslandSimulation::advance(Time to, std::vector<Finish>& finished) {
  handle_until(to);
  for (; !told_.empty() && told_.top().when <= to; told_.pop()) {
    if (is_open(told_.top())) {
      const auto [when, index, place] = told_.top();
      Run& run = runs_[at(index)];
      run.told->finished[at(place)] = 1;
      --run.unfinished;
      finished_.push_back({index, place});
    }
  }
  finished.insert(finished.end(), finished_.begin(), finished_.end());
  finished_.clear();
}

/// Whether everything of it has arrived.
bool IslandSimulation::over(const IslandSimulation& of, const Run& run) {
  const CommunicatorShape& shape = of.shape_of(run);
  if (run.unfinished > 0) {
    return false;
  }
  for (std::size_t i = 0; i < run.slots.size() && !run.told; ++i) {
    if (run.slots[i].delivered < shape.slots[i].count) {
      return false;
    }
  }
  return true;
}

void IslandSimulation::forget_over(std::vector<std::int32_t>& gone) {
  for (Communicator& communicator : communicators_) {
    std::erase_if(communicator.runs, [&](std::int32_t index) {
      Run& run = runs_[at(index)];
      if (!over(*this, run)) {
        return false;
      }
      retire(run);
      run = {};
      run.communicator = static_cast<std::int32_t>(&communicator - communicators_.data());
      gone.push_back(index);
      return true;
    });
  }
}

std::vector<IslandSimulation::SameRun> IslandSimulation::adopt(
    std::int32_t communicator, const IslandSimulation& from, std::int32_t theirs,
    std::span<const std::int32_t> slot_of, std::span<const std::int32_t> place_of) {
  LOCKSTEP_CHECK(from.finished_.empty(), "who has finished has been told");
  const CommunicatorShape& shape = *communicators_[at(communicator)].shape;
  const auto their_slot = [&](std::size_t slot) {
    return slot_of.empty() ? static_cast<std::int32_t>(slot) : slot_of[slot];
  };
  std::vector<SameRun> same;
  for (const std::int32_t r : from.communicators_[at(theirs)].runs) {
    const Run& old = from.runs_[at(r)];
    if (over(from, old)) {
      continue;
    }
    same.push_back({r, add_run(communicator)});
    Run& run = runs_.back();
    if (old.told) {
      LOCKSTEP_CHECK(slot_of.empty() && place_of.empty(), "what is told goes on as it is");
      run.left = old.left;
      run.entered = old.entered;
      run.slots = old.slots;
      run.unfinished = old.unfinished;
      run.told = std::make_unique<Told>(*old.told);
      rest_ = std::max(rest_, from.rest_);
      take_told(same.back().mine);
      continue;
    }
    for (std::size_t place = 0; place < run.left.size(); ++place) {
      const std::size_t other = place_of.empty() ? place : at(place_of[place]);
      run.entered[place] = old.entered[other];
    }
    for (std::size_t i = 0; i < run.slots.size(); ++i) {
      const CommunicatorShape::Slot& slot = shape.slots[i];
      const SlotState& state = run.slots[i] = old.slots[at(their_slot(i))];
      if (tells_) {
        count_flows(run, static_cast<std::int32_t>(i), state.started - state.sent);
      }
      if (slot.source >= 0) {
        run.left[at(slot.source)] -= std::int64_t{state.sent} * slot.leave;
      }
      if (slot.destination >= 0) {
        run.left[at(slot.destination)] -= std::int64_t{state.delivered} * slot.reach;
      }
    }
    for (std::size_t place = 0; place < run.left.size(); ++place) {
      run.unfinished -= run.left[place] == 0 && run.entered[place] != 0 ? 1 : 0;
    }
  }
  if (same.empty()) {
    return same;  // nothing is under way
  }
  const auto run_here = [&](std::uint64_t tag) {
    const auto found = std::ranges::lower_bound(same, run_of(tag), {}, &SameRun::theirs);
    return found != same.end() && found->theirs == run_of(tag) ? found->mine : -1;
  };
  std::unordered_multimap<std::int32_t, std::int32_t> mine;  // slots, by theirs
  for (std::size_t i = 0; i < shape.slots.size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    mine.emplace(their_slot(i), slot);
    network_.adopt(ConnectionId(communicators_[at(communicator)].first_connection + slot),
                   from.network_,
                   ConnectionId(from.communicators_[at(theirs)].first_connection + their_slot(i)),
                   [&](std::uint64_t tag) { return tag_of(run_here(tag), slot); });
  }
  from.network_.for_each_delivery([&](Time after, std::uint64_t tag) {
    const std::int32_t run = run_here(tag);
    if (run >= 0) {
      const auto [first, last] = mine.equal_range(slot_of_tag(tag));
      for (auto each = first; each != last; ++each) {
        network_.add_delivery(after, tag_of(run, each->second));
      }
    }
  });
  return same;
}

}  // namespace lockstep
