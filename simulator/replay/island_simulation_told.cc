// Collectives of an island that are told from LoneTimes, as long as they are alone on their ports.
#include <algorithm>
#include <utility>

#include "base/index.h"
#include "simulator/replay/island_simulation.h"

namespace lockstep {

/// Counts what is on the network.
void IslandSimulation::begin_to_tell() {
  tells_ = true;
  flows_.assign(constraint_.size(), 0);
  holder_.assign(constraint_.size(), {});
  for (const Run& run : runs_) {
    for (std::size_t slot = 0; slot < run.slots.size(); ++slot) {
      count_flows(run, static_cast<std::int32_t>(slot),
                  run.slots[slot].started - run.slots[slot].sent);
    }
  }
}

void IslandSimulation::count_flows(const Run& run, std::int32_t slot, std::int32_t by) {
  const Communicator& communicator = communicators_[at(run.communicator)];
  for (const MaxMin::Term& term : communicator.shape->terms(at(slot))) {
    flows_[communicator.constraint[term.constraint.index()].index()] += by;
  }
}

/// Whether a told slot may still be at work on its constraints at `now` or later. While it rests
/// for want of a place that is to enter it is not.
bool IslandSimulation::at_work(const Holder& holder, Time now) const {
  if (holder.run < 0 || runs_[at(holder.run)].told == nullptr) {
    return false;
  }
  const Told& told = *runs_[at(holder.run)].told;
  return (told.known() ? told.times.ends.sent[at(holder.slot)] : told.rest) > now;
}

/// Whether others are on a slot's constraints.
bool IslandSimulation::is_taken(const Communicator& communicator, std::size_t slot,
                                Time now) const {
  return std::ranges::any_of(communicator.shape->terms(slot), [&](const MaxMin::Term& term) {
    const std::size_t constraint = communicator.constraint[term.constraint.index()].index();
    return flows_[constraint] > 0 || at_work(holder_[constraint], now);
  });
}

void IslandSimulation::hold_constraints(std::int32_t run, std::int32_t slot) {
  const Communicator& communicator = communicators_[at(runs_[at(run)].communicator)];
  for (const MaxMin::Term& term : communicator.shape->terms(at(slot))) {
    holder_[communicator.constraint[term.constraint.index()].index()] = {run, slot};
  }
}

/// A place enters a collective that is told. False where others are on its constraints; then the
/// collective is no more told.
bool IslandSimulation::enter_told(std::int32_t run_index, std::int32_t place, Time now) {
  const Communicator& communicator = communicators_[at(runs_[at(run_index)].communicator)];
  const CommunicatorShape& shape = *communicator.shape;
  Told& told = *runs_[at(run_index)].told;
  const bool first = told.to_enter == std::ssize(told.entry);
  // If it rested, those who entered earlier go on now, and others may have come where they do.
  going_on_.clear();
  for (std::size_t i = 0; i < told.entry.size() && !first && told.rest <= now; ++i) {
    if (told.entry[i] < Time::max()) {
      going_on_.push_back(static_cast<std::int32_t>(i));
    }
  }
  going_on_.push_back(place);
  for (const std::int32_t each : going_on_) {
    for (const std::int32_t slot : shape.slots_from(at(each))) {
      if (is_taken(communicator, at(slot), now)) {
        simulate_told(run_index);
        return false;
      }
    }
  }
  for (const std::int32_t each : going_on_) {
    for (const std::int32_t slot : shape.slots_from(at(each))) {
      hold_constraints(run_index, slot);
    }
  }
  told.entry[at(place)] = now;
  if (--told.to_enter > 0) {
    waiting_ += first ? 1 : 0;
    told.rest = now + communicator.lone->duration();
    rest_ = std::max(waiting_ > 1 ? rest_ : Time(), told.rest);
    return true;
  }
  waiting_ -= first ? 0 : 1;
  if (!know(run_index)) {
    simulate_told(run_index);
  }
  return true;
}

/// The last place of a collective that runs by events enters. True where it can be told from here.
bool IslandSimulation::tell_again(std::int32_t run_index, std::int32_t place, Time now) {
  Run& run = runs_[at(run_index)];
  const Communicator& communicator = communicators_[at(run.communicator)];
  if (communicator.lone == nullptr || std::ranges::count(run.entered, 0) > 1) {
    return false;
  }
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const SlotState& state = run.slots[i];
    if (state.started != state.delivered || is_taken(communicator, i, now)) {
      return false;
    }
  }
  run.told = new_told(run.left.size());
  run.told->entry[at(place)] = now;
  if (!know(run_index)) {
    spare_told_.push_back(std::move(run.told));
    return false;
  }
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    hold_constraints(run_index, static_cast<std::int32_t>(i));
  }
  return true;
}

/// All have entered a told collective: works out its ends. False where there are none.
bool IslandSimulation::know(std::int32_t run_index) {
  Run& run = runs_[at(run_index)];
  Told& told = *run.told;
  entry_ = told.entry;
  std::ranges::replace(entry_, Time::max(), now());  // it rested, so when does not matter
  done_.clear();
  for (const SlotState& state : run.slots) {
    done_.push_back(state.delivered);
  }
  if (!communicators_[at(run.communicator)].lone->tell(entry_, done_, told.times)) {
    return false;
  }
  for (std::size_t place = 0; place < told.times.finish.size(); ++place) {
    told_.push({told.times.finish[place], run_index, static_cast<std::int32_t>(place)});
  }
  return true;
}

/// What was adopted holds its constraints here, too, and ends when it did.
void IslandSimulation::take_told(std::int32_t run_index) {
  const Told& told = *runs_[at(run_index)].told;
  const CommunicatorShape& shape = shape_of(runs_[at(run_index)]);
  waiting_ += !told.known() && told.to_enter < std::ssize(told.entry) ? 1 : 0;
  for (std::size_t place = 0; place < told.entry.size(); ++place) {
    for (const std::int32_t slot : shape.slots_from(place)) {
      const bool entered =
          told.entry[place] < Time::max() || runs_[at(run_index)].entered[place] != 0;
      if (entered && at_work({run_index, slot}, now())) {
        hold_constraints(run_index, slot);
      }
    }
    if (told.known() && told.finished[place] == 0) {
      told_.push({told.times.finish[place], run_index, static_cast<std::int32_t>(place)});
    }
  }
}

/// Told slots that are at work where a flow is to start: their collectives are simulated.
void IslandSimulation::make_way(const Run& run, std::int32_t slot) {
  const Communicator& communicator = communicators_[at(run.communicator)];
  for (const MaxMin::Term& term : communicator.shape->terms(at(slot))) {
    Holder& holder = holder_[communicator.constraint[term.constraint.index()].index()];
    if (at_work(holder, now())) {
      simulate_told(holder.run);
    }
    holder = {};
  }
}

/// A told collective goes on by events, from where it stands now.
void IslandSimulation::simulate_told(std::int32_t run_index) {
  Run& run = runs_[at(run_index)];
  spare_told_.push_back(std::move(run.told));
  Told* const told = spare_told_.back().get();  // until another one is opened
  const Communicator& communicator = communicators_[at(run.communicator)];
  const CommunicatorShape& shape = *communicator.shape;
  const Time first = std::ranges::min(told->entry);
  if (first == Time::max()) {
    return;
  }
  waiting_ -= told->known() ? 0 : 1;
  done_.clear();
  for (const SlotState& state : run.slots) {
    done_.push_back(state.delivered);
  }
  for (std::size_t place = 0; place < told->entry.size(); ++place) {
    if (run.entered[place] != 0) {
      told->entry[place] = first;  // it had rested since
    }
    run.entered[place] = told->entry[place] < Time::max() ? 1 : 0;
  }
  const std::vector<LoneTimes::SlotState> states = communicator.lone->at(told->entry, done_, now());
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const CommunicatorShape::Slot& slot = shape.slots[i];
    const LoneTimes::SlotState& state = states[i];
    run.left[at(slot.source)] -= std::int64_t{state.sent - run.slots[i].sent} * slot.leave;
    run.left[at(slot.destination)] -=
        std::int64_t{state.delivered - run.slots[i].delivered} * slot.reach;
    run.slots[i] = {state.started, state.sent, state.delivered};
    count_flows(run, index, state.started - state.sent);
    put_on_network(run_index, index, state);
  }
  run.unfinished = 0;
  for (std::size_t place = 0; place < run.left.size(); ++place) {
    if (run.left[place] > 0 || run.entered[place] == 0) {
      ++run.unfinished;
    } else if (told->finished[place] == 0) {
      finished_.push_back({run_index, static_cast<std::int32_t>(place)});
    }
  }
}

/// What a slot has under way.
void IslandSimulation::put_on_network(std::int32_t run, std::int32_t slot,
                                      const LoneTimes::SlotState& state) {
  const Communicator& communicator = communicators_[at(runs_[at(run)].communicator)];
  const CommunicatorShape::Slot& what = communicator.shape->slots[at(slot)];
  const ConnectionId connection(communicator.first_connection + slot);
  const std::uint64_t tag = tag_of(run, slot);
  const auto start = [&](Time when) {
    network_.start(connection, what.bits, what.latency, std::max(when + offset_, network_.now()),
                   tag);
  };
  if (state.started > state.sent && state.begin <= now()) {
    network_.resume(connection, what.bits, what.latency, state.begin + offset_,
                    communicator.lone->rate(at(slot)), tag);
  } else if (state.started > state.sent) {
    start(state.begin);
  }
  for (const Time may_begin : state.may_begin) {
    start(may_begin);
  }
  for (const Time delivery : state.deliveries) {
    network_.add_delivery(delivery - now(), tag);
  }
}

void IslandSimulation::simulate_all() {
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    if (runs_[run].told) {
      simulate_told(static_cast<std::int32_t>(run));
    }
  }
}

}  // namespace lockstep
