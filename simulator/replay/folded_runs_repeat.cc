// What of folded collectives decides whether a step repeats itself, and its next time (standing.h).
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "simulator/replay/folded_runs.h"
#include "simulator/replay/standing.h"

namespace lockstep {

bool IslandSimulation::save(std::span<const std::int32_t> runs, Standing& standing) const {
  if (!network_.idle() || !finished_.empty() || !told_.empty() || (waiting_ > 0 && rest_ > now())) {
    return false;
  }
  for (const std::int32_t each : runs) {
    const Run& run = runs_[at(each)];
    standing.add(run.communicator);
    standing.add(run.unfinished);
    for (std::size_t place = 0; place < run.left.size(); ++place) {
      standing.add(run.left[place]);
      standing.add(run.entered[place]);
    }
    for (const SlotState& slot : run.slots) {
      standing.add(slot.started);
      standing.add(slot.sent);
      standing.add(slot.delivered);
    }
    if (run.told) {
      if (run.told->known()) {
        return false;
      }
      for (const Time entry : run.told->entry) {  // which stay what they are
        standing.add(entry);
      }
    }
  }
  return true;
}

bool IslandSimulation::rests() const {
  return network_.idle() && finished_.empty() && told_.empty() && (waiting_ == 0 || rest_ <= now());
}

bool FoldedRuns::rests(std::span<const std::int32_t> part_of, std::int32_t part) const {
  return std::ranges::all_of(islands_, [&](const std::unique_ptr<Island>& island) {
    return island->communicators.empty() || island->due == Time::max() || !island->simulation ||
           part_of[at(island->communicators.front())] != part || island->simulation->rests();
  });
}

std::vector<std::int32_t> FoldedRuns::islands_of(
    std::span<const std::int32_t> communicators) const {
  std::vector<std::int32_t> islands;
  std::vector<char> seen(islands_.size());
  for (const std::int32_t each : communicators) {
    const std::int32_t island = communicators_[at(each)].island;
    if (island >= 0 && std::exchange(seen[at(island)], 1) == 0) {
      islands.push_back(island);
    }
  }
  return islands;
}

std::int32_t FoldedRuns::rank_at(std::int32_t communicator, std::size_t place) const {
  return fold_.representative[at(fold_.communicators[at(communicator)].classes[place])];
}

void FoldedRuns::save(std::span<const std::int32_t> communicators, Standing& standing) const {
  for (const std::int32_t each : communicators) {
    standing.collectives.push_back(communicators_[at(each)].runs);
  }
  for (const std::int32_t index : islands_of(communicators)) {
    const Island& island = *islands_[at(index)];
    standing.begin_block();
    standing.add(index);
    standing.add(island.version);
    standing.relative();
    standing.add(std::ssize(island.communicators));
    for (const std::int32_t each : island.communicators) {
      standing.add(each);
    }
    standing.add(island.due == Time::max() ? island.due : island.due - standing.now);
    for (const std::int32_t each : island.open) {
      const Run& run = island.runs[at(each)];
      standing.add(run.communicator);
      for (std::size_t place = 0; place < run.op.size(); ++place) {
        const std::int32_t rank = rank_at(run.communicator, place);
        standing.add(run.op[place] >= 0 ? run.op[place] - standing.done[at(rank)]
                                        : std::int64_t{INT32_MIN} + run.op[place]);
      }
    }
    if (island.recording || !island.simulation) {  // its session is told or recorded
      standing.add(island.node);
      standing.add(island.base - standing.now);
      for (const Entry& entry : island.log) {
        standing.add(entry.when - standing.now);
        standing.add(entry.run);
        standing.add(entry.place);
      }
    }
    const bool may_move = !island.simulation || island.simulation->save(island.open, standing);
    standing.end_block(island.due == Time::max(), may_move);
  }
}

void FoldedRuns::skip(std::span<const std::int32_t> communicators, std::span<const char> moved,
                      std::span<const std::int64_t> collectives, Time by,
                      std::span<const std::int32_t> shift) {
  LOCKSTEP_CHECK(told_.empty(), "all that happened has been dealt with");
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    communicators_[at(communicators[i])].runs += collectives[i];
    transfers_ += collectives[i] * known_->transfers[at(communicators[i])];
  }
  const std::vector<std::int32_t> islands = islands_of(communicators);
  for (std::size_t i = 0; i < islands.size(); ++i) {
    if (moved[i] == 0) {
      continue;
    }
    Island& island = *islands_[at(islands[i])];
    island.base += by;
    for (Entry& entry : island.log) {
      entry.when += by;
    }
    for (const std::int32_t each : island.open) {
      Run& run = island.runs[at(each)];
      run.sequence = sequence_later(run, shift);
      run.moved += by;
      for (std::size_t place = 0; place < run.op.size(); ++place) {
        run.op[place] += run.op[place] >= 0 ? shift[at(rank_at(run.communicator, place))] : 0;
      }
    }
    schedule(islands[i], island.due == Time::max() ? island.due : island.due + by);
  }
}

/// The number of the collective that is to a run what the next times of its operations are to them.
std::int32_t FoldedRuns::sequence_later(const Run& run, std::span<const std::int32_t> shift) const {
  std::int32_t past = -1;  // a place that is through
  for (std::size_t place = 0; place < run.op.size(); ++place) {
    const std::int32_t rank = rank_at(run.communicator, place);
    if (run.op[place] >= 0) {
      return work_.program(rank).ops()[at(run.op[place] + shift[at(rank)])].sequence;
    }
    past = run.op[place] == kFinished ? rank : past;
  }
  LOCKSTEP_CHECK(past >= 0, "somebody has entered what is open");
  const auto ops = work_.program(past).ops();
  for (std::int32_t op = 0; op < std::ssize(ops); ++op) {
    if (ops[at(op)].comm != CommType::kNone && ops[at(op)].sequence == run.sequence &&
        communicator_of(past, op) == run.communicator) {
      return ops[at(op + shift[at(past)])].sequence;
    }
  }
  LOCKSTEP_CHECK(false, "a collective is an operation of its places");
  return -1;
}

}  // namespace lockstep
