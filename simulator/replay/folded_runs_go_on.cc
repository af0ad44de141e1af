// How folded collectives go on from a coarser fold to a finer one, with what is under way.
#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "simulator/replay/folded_runs.h"

namespace lockstep {

void FoldedRuns::go_on_from(FoldedRuns& before, Time now) {
  now_ = now;
  transfers_ = before.transfers_;
  const StepFold& old = before.fold_;
  std::vector<std::int32_t> communicator_of_slot(old.graph.slots.size());
  std::vector<std::int32_t> local_slot(old.graph.slots.size());
  for (std::size_t c = 0; c < old.communicators.size(); ++c) {
    for (std::size_t i = 0; i < old.communicators[c].slots.size(); ++i) {
      communicator_of_slot[at(old.communicators[c].slots[i])] = static_cast<std::int32_t>(c);
      local_slot[at(old.communicators[c].slots[i])] = static_cast<std::int32_t>(i);
    }
  }
  Descent descent;
  descent.children.resize(old.communicators.size());
  descent.parent.assign(communicators_.size(), -1);
  for (std::size_t c = 0; c < communicators_.size(); ++c) {
    const std::size_t first = at(fold_.first_of_slot[at(fold_.communicators[c].slots.front())]);
    if (first < old.slot_of.size()) {
      descent.parent[c] = communicator_of_slot[at(old.slot_of[first])];
      descent.children[at(descent.parent[c])].push_back(static_cast<std::int32_t>(c));
    }
  }
  descent.number_in_island.assign(old.communicators.size(), -1);
  for (const std::unique_ptr<Island>& island : before.islands_) {
    if (!island->communicators.empty()) {
      for (std::size_t i = 0; i < island->communicators.size(); ++i) {
        descent.number_in_island[at(island->communicators[i])] = static_cast<std::int32_t>(i);
      }
      if (!island->simulation) {
        before.simulate(*island, now, now);
      }
      finishes_.clear();
      island->simulation->simulate_all();
      island->simulation->advance(now, finishes_);
      LOCKSTEP_CHECK(finishes_.empty(), "all that happened has been dealt with");
      go_on_from(before, *island, descent, local_slot, now);
    }
  }
}

/// An island of the phase before: its communicators' parts, as islands of those that share
/// constraints.
void FoldedRuns::go_on_from(FoldedRuns& before, Island& old_island, const Descent& descent,
                            std::span<const std::int32_t> local_slot, Time now) {
  std::vector<std::vector<std::int32_t>> parts;  // of communicators
  std::map<std::int32_t, std::size_t> part_of_constraint;
  for (const std::int32_t parent : old_island.communicators) {
    for (const std::int32_t child : descent.children[at(parent)]) {
      const std::size_t part = parts.size();
      parts.push_back({child});
      for (const std::int32_t constraint : constraints(child)) {
        const std::size_t other = part_of_constraint.try_emplace(constraint, part).first->second;
        if (other != part) {  // takes in that one
          parts[part].insert(parts[part].end(), parts[other].begin(), parts[other].end());
          for (const std::int32_t each : parts[other]) {
            for (const std::int32_t its : constraints(each)) {
              part_of_constraint[its] = part;
            }
          }
          parts[other].clear();
        }
      }
    }
  }
  const StepFold& old = before.fold_;
  for (const std::vector<std::int32_t>& part : parts) {
    if (part.empty()) {
      continue;
    }
    const std::int32_t index = new_island();
    Island& island = *islands_[at(index)];
    island.recording = false;
    island.simulation = std::make_unique<IslandSimulation>();
    island.simulation->begin(now);
    island.communicators = part;
    for (const std::int32_t child : part) {
      const StepFold::Communicator& what = fold_.communicators[at(child)];
      const std::int32_t parent = descent.parent[at(child)];
      std::vector<std::int32_t> slot_of, place_of;
      for (const std::int32_t slot : what.slots) {
        slot_of.push_back(local_slot[at(old.slot_of[at(fold_.first_of_slot[at(slot)])])]);
      }
      const std::vector<std::int32_t>& classes = old.communicators[at(parent)].classes;
      for (const std::int32_t of_class : what.classes) {
        const std::int32_t rank = fold_.representative[at(of_class)];
        place_of.push_back(static_cast<std::int32_t>(
            std::ranges::lower_bound(classes, old.class_of_rank[at(rank)]) - classes.begin()));
      }
      SessionKind& kind = *communicators_[at(child)].kind;
      const std::int32_t mine =
          island.simulation->add(kind.shape, constraints(child), kind.lone_times());
      const std::vector<IslandSimulation::SameRun> same = island.simulation->adopt(
          mine, *old_island.simulation, descent.number_in_island[at(parent)], slot_of, place_of);
      for (const auto& [old_run, new_run] : same) {
        const Run& was = old_island.runs[at(old_run)];
        LOCKSTEP_CHECK(at(new_run) == island.run_count, "runs are numbered alike");
        Run& run = island.runs[at(open_run(island, child, was.sequence))];
        run.moved = was.moved;
        for (std::size_t place = 0; place < run.op.size(); ++place) {
          run.op[place] = was.op[at(place_of[place])];
          run.unfinished -= run.op[place] == kFinished ? 1 : 0;
        }
        if (run.unfinished == 0) {
          island.open.pop_back();
          communicators_[at(child)].open.pop_back();
        }
      }
    }
    own(index);
    const Time next = island.simulation->next();
    if (island.open.empty() && next == Time::max()) {
      close(index);
    } else {
      schedule(index, next);
    }
  }
}

}  // namespace lockstep
