// Islands of folded runs: how communicators that share a port come together, and part again.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "simulator/replay/folded_runs.h"

namespace lockstep {

/// The island of a communicator that a rank enters: its own, or what those become that meet there.
std::int32_t FoldedRuns::settle(std::int32_t communicator, std::int32_t rank, Time now) {
  std::int32_t index = communicators_[at(communicator)].island;
  const std::span<const std::int32_t> reached = reach(communicator, rank);
  others_.clear();
  if (index >= 0) {
    others_.push_back(index);
  }
  for (const std::int32_t constraint : reached) {
    const std::int32_t owner = owner_[at(constraint)];
    if (owner >= 0 && std::ranges::find(others_, owner) == others_.end()) {
      others_.push_back(owner);
    }
  }
  if (others_.empty()) {
    index = new_island();
    Island& island = *islands_[at(index)];
    island.communicators = {communicator};
    island.recording = !sessions_.full();
    island.base = now;
  } else if (index < 0 || others_.size() > 1) {
    index = join(others_, index < 0 ? communicator : -1, now);
  }
  communicators_[at(communicator)].island = index;
  for (const std::int32_t constraint : reached) {
    owner_[at(constraint)] = index;
  }
  return index;
}

/// Marks what an island consists of, and the constraints that those who have entered reach.
void FoldedRuns::own(std::int32_t index) {
  const Island& island = *islands_[at(index)];
  for (const std::int32_t each : island.communicators) {
    communicators_[at(each)].island = index;
  }
  for (std::size_t i = 0; i < island.run_count; ++i) {
    const Run& run = island.runs[i];
    for (std::size_t place = 0; place < run.op.size(); ++place) {
      if (run.op[place] != kNotEntered) {
        const std::int32_t of_class = fold_.communicators[at(run.communicator)].classes[place];
        for (const std::int32_t constraint :
             reach(run.communicator, fold_.representative[at(of_class)])) {
          owner_[at(constraint)] = index;
        }
      }
    }
  }
}

std::int32_t FoldedRuns::new_island() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(islands_.size()));
    islands_.push_back(std::make_unique<Island>());
  }
  const std::int32_t index = free_.back();
  free_.pop_back();
  return index;
}

std::int32_t FoldedRuns::open_run(Island& island, std::int32_t communicator,
                                  std::int32_t sequence) {
  const auto index = static_cast<std::int32_t>(island.run_count++);
  if (island.runs.size() < island.run_count) {
    island.runs.emplace_back();
  }
  Run& run = island.runs[at(index)];
  run.communicator = communicator;
  run.sequence = sequence;
  if (!spare_op_.empty() && run.op.capacity() == 0) {
    run.op = std::move(spare_op_.back());
    spare_op_.pop_back();
  }
  run.op.assign(fold_.communicators[at(communicator)].classes.size(), kNotEntered);
  run.unfinished = static_cast<std::int32_t>(run.op.size());
  island.open.push_back(index);
  communicators_[at(communicator)].open.push_back(index);
  return index;
}

/// One island of several and a communicator, if it is not -1. What they have under way goes on as
/// it stands; the largest takes in the others.
std::int32_t FoldedRuns::join(std::span<const std::int32_t> islands, std::int32_t communicator,
                              Time now) {
  const auto size = [&](std::int32_t island) { return islands_[at(island)]->communicators.size(); };
  for (const std::int32_t each : islands) {
    Island& island = *islands_[at(each)];
    if (!island.simulation) {
      simulate(island, now, now);
    }
    island.recording = false;
    finishes_.clear();
    island.simulation->advance(now, finishes_);
    for (const IslandSimulation::Finish& finish : finishes_) {
      tell(island, finish.run, finish.place);
    }
  }
  const std::int32_t index = *std::ranges::max_element(islands, {}, size);
  Island& joined = *islands_[at(index)];
  leave_pool(joined);
  for (const std::int32_t other : islands) {
    if (other != index) {
      take_in(index, other);
      close(other);
    }
  }
  if (communicator < 0) {
    schedule(index, joined.simulation->next());
    return index;
  }
  joined.communicators.push_back(communicator);
  SessionKind& kind = *communicators_[at(communicator)].kind;
  joined.simulation->add(kind.shape, constraints(communicator), kind.lone_times());
  return index;
}

/// From now on its simulation is not like others of its kind.
void FoldedRuns::leave_pool(Island& island) {
  if (island.pooled) {
    island.pooled = false;
    island.simulation->rename(constraints(island.communicators[0]));
  }
}

void FoldedRuns::take_in(std::int32_t index, std::int32_t other) {
  Island &joined = *islands_[at(index)], &island = *islands_[at(other)];
  for (std::size_t c = 0; c < island.communicators.size(); ++c) {
    const std::int32_t number = island.communicators[c];
    joined.communicators.push_back(number);
    communicators_[at(number)].island = index;
    communicators_[at(number)].open.clear();  // they get other numbers
    for (const std::int32_t constraint : constraints(number)) {
      std::int32_t& owner = owner_[at(constraint)];
      owner = owner == other ? index : owner;
    }
    SessionKind& kind = *communicators_[at(number)].kind;
    const std::int32_t added =
        joined.simulation->add(kind.shape, constraints(number), kind.lone_times());
    for (const auto& [theirs, mine] : joined.simulation->adopt(
             added, *island.simulation, static_cast<std::int32_t>(c), {}, {})) {
      LOCKSTEP_CHECK(at(mine) == joined.run_count, "runs are numbered alike");
      const Run& old = island.runs[at(theirs)];
      Run& moved = joined.runs[at(open_run(joined, old.communicator, old.sequence))];
      moved.op = old.op;
      moved.moved = old.moved;
      moved.unfinished = old.unfinished;
      if (moved.unfinished == 0) {
        joined.open.pop_back();
        communicators_[at(number)].open.pop_back();
      }
    }
  }
}

void FoldedRuns::forget_over(Island& island) {
  over_.clear();
  island.simulation->forget_over(over_);
  for (const std::int32_t run : over_) {
    spare_op_.push_back(std::exchange(island.runs[at(run)].op, {}));
  }
  island.forget_at = island.run_count + kForget;
}

/// Gives an island back. Its communicators are as they were before they were entered.
void FoldedRuns::close(std::int32_t index) {
  Island& island = *islands_[at(index)];
  ++island.version;
  for (const std::int32_t each : island.communicators) {
    if (communicators_[at(each)].island != index) {
      continue;  // taken in
    }
    communicators_[at(each)].island = -1;
    communicators_[at(each)].open.clear();
    for (const std::int32_t constraint : constraints(each)) {
      std::int32_t& owner = owner_[at(constraint)];
      owner = owner == index ? -1 : owner;
    }
  }
  if (island.pooled && island.simulation->idle()) {
    communicators_[at(island.communicators[0])].kind->idle.push_back(std::move(island.simulation));
  }
  island.simulation.reset();
  island.pooled = false;
  island.communicators.clear();
  island.run_count = 0;
  island.forget_at = kForget;
  island.open.clear();
  island.log.clear();
  island.node = SessionMemo::kRoot;
  free_.push_back(index);
}

}  // namespace lockstep
