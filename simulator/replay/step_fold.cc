#include "simulator/replay/step_fold.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/parallel_slots.h"
#include "simulator/replay/shared_step.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {
namespace {

/// Folds a graph by a partition. False where slots of a class are those of several collectives,
/// which cannot be where each is connected, or where one class has both ends of a pair.
bool fold_by(const StepLayout& layout, const Partition& partition_of, StepFold& result) {
  const FlowGraph& graph = layout.graph;
  const Partition* partition = &partition_of;
  result.communicators.clear();
  result.communicator_of.clear();
  result.class_of_rank = partition->place_class;
  result.representative.assign(at(partition->place_classes), -1);
  for (auto rank = static_cast<std::int32_t>(result.class_of_rank.size()); rank-- > 0;) {
    result.representative[at(result.class_of_rank[at(rank)])] = rank;
  }
  result.graph = fold(graph, *partition);
  result.ends.assign(result.graph.slots.size(), {});
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const FlowGraph::Slot& slot = graph.slots[i];
    const auto is_first = [&](std::int32_t rank) {
      return rank >= 0 && result.representative[at(result.class_of_rank[at(rank)])] == rank;
    };
    StepFold::Ends& ends = result.ends[at(partition->slot_class[i])];
    ends.leave += is_first(slot.source) ? 1 : 0;
    ends.reach += is_first(slot.destination) ? 1 : 0;
  }

  // The communicators: what the slots of each collective are folded to.
  std::vector<std::int32_t> communicator(result.graph.slots.size(), -1);
  for (const StepLayout::Unit& unit : layout.units) {
    if (unit.first_slot < 0) {
      continue;
    }
    const std::int32_t first = unit.first_slot;
    std::int32_t& known = communicator[at(partition->slot_class[at(first)])];
    const bool is_new = known < 0;
    if (is_new) {
      known = static_cast<std::int32_t>(result.communicators.size());
      result.communicators.emplace_back();
    }
    const std::int32_t index = known;
    if (unit.sender >= 0 &&
        result.class_of_rank[at(unit.sender)] == result.class_of_rank[at(unit.receiver)]) {
      return false;
    }
    for (std::int32_t i = first; i < first + unit.slots; ++i) {
      const std::int32_t slot = partition->slot_class[at(i)];
      if (is_new && (i == first || communicator[at(slot)] < 0)) {
        communicator[at(slot)] = index;
        result.communicators[at(index)].slots.push_back(slot);
      }
      if (communicator[at(slot)] != index) {
        return false;
      }
    }
  }
  for (StepFold::Communicator& each : result.communicators) {
    std::map<std::int32_t, std::int64_t> shares;
    for (const std::int32_t slot : each.slots) {
      const FlowGraph::Slot& folded = result.graph.slots[at(slot)];
      if (folded.source >= 0) {
        shares[folded.source] += std::int64_t{folded.count} * result.ends[at(slot)].leave;
      }
      if (folded.destination >= 0) {
        shares[folded.destination] += std::int64_t{folded.count} * result.ends[at(slot)].reach;
      }
    }
    for (const auto& [place, share] : shares) {
      each.classes.push_back(place);
      each.shares.push_back(share);
    }
  }
  for (const std::int32_t rank : result.representative) {
    std::vector<std::int32_t>& of = result.communicator_of.emplace_back();
    for (const std::int32_t unit : layout.unit_of[at(rank)]) {
      if (unit == StepLayout::kLater) {
        of.push_back(StepFold::kLater);
        continue;
      }
      const std::int32_t first = unit < 0 ? -1 : layout.units[at(unit)].first_slot;
      const std::int32_t index =
          first < 0 ? -1 : communicator[at(partition->slot_class[at(first)])];
      const bool takes_part =
          index >= 0 && std::ranges::binary_search(result.communicators[at(index)].classes,
                                                   result.class_of_rank[at(rank)]);
      of.push_back(takes_part ? index : StepFold::kAlone);
    }
  }
  return true;
}

}  // namespace

StepFolder::StepFolder(const StepPlace& place, std::vector<std::uint64_t> rank_colour,
                       KeptStep* kept, SharedStep* shared)
    : place_(place),
      rank_colour_(std::move(rank_colour)),
      kept_(kept),
      shared_(place.options.changes.empty() ? shared : nullptr) {
  if (kept_ != nullptr) {
    std::map<std::uint64_t, std::int32_t> numbers;
    for (const std::uint64_t colour : rank_colour_) {
      pattern_.push_back(
          numbers.try_emplace(colour, static_cast<std::int32_t>(numbers.size())).first->second);
    }
  }
}

std::shared_ptr<StepFold> StepFolder::fold(std::int32_t phase) const {
  if (kept_ == nullptr) {
    return make(phase, nullptr);
  }
  std::shared_ptr<StepFold>& fold = kept_->folds[{kept_->network, pattern_}][at(phase)];
  if (phase == 1 && ahead_.valid()) {
    fold = ahead_.get();
  }
  if (fold == nullptr) {
    fold = make(phase, &kept_->partitions[pattern_][at(phase)]);
  }
  return fold;
}

void StepFolder::fold_ahead() {
  const bool schedules_are_free = !place_.options.channels;  // which asks for them in the replay
  if (kept_ != nullptr && phases() > 1 && schedules_are_free &&
      kept_->folds[{kept_->network, pattern_}][1] == nullptr) {
    std::optional<Partition>* known = &kept_->partitions[pattern_][1];
    try {
      ahead_ = std::async(std::launch::async, [this, known] { return make(1, known); });
    } catch (const std::system_error&) {
      return;  // the system gives no more threads: fold(1) does it
    }
  }
}

/// `known` is tried as the partition, and replaced by the one that was found.
std::shared_ptr<StepFold> StepFolder::make(std::int32_t last_phase,
                                           std::optional<Partition>* known) const {
  const auto lay_it_out = [&] { return lay_out(place_, last_phase); };
  const std::shared_ptr<const StepLayout> layout =
      shared_ != nullptr ? shared_->layout(last_phase, lay_it_out) : lay_it_out();
  if (layout == nullptr) {
    return nullptr;
  }
  const FlowGraph& graph = layout->graph;
  auto made = std::make_shared<StepFold>();
  StepFold& result = *made;
  std::optional<Partition> partition =
      find_symmetry(graph, known != nullptr && *known ? &**known : nullptr, rank_colour_);
  if (partition && !fold_by(*layout, *partition, result)) {
    partition.reset();
  }
  if (!partition) {
    partition = parallel_slots(*layout);
    LOCKSTEP_CHECK(fold_by(*layout, *partition, result), "slots of their own fold");
  }
  if (known != nullptr) {
    *known = partition;  // with no ranks alike, too: then that is tried, and always holds
  }
  result.ways = layout->ways;
  result.facts = place_.facts;
  for (const NetworkChange& change : place_.options.changes) {
    const std::int32_t constraint = layout->constraint_of[change.port.index()];
    if (constraint >= 0) {
      result.constraint_of_port[change.port.value] = partition->constraint_class[at(constraint)];
    }
  }
  result.first_of_slot.assign(result.graph.slots.size(), -1);
  for (std::size_t i = graph.slots.size(); i-- > 0;) {
    result.first_of_slot[at(partition->slot_class[i])] = static_cast<std::int32_t>(i);
  }
  result.slot_of = std::move(partition->slot_class);
  result.shaped = shapes_of(result);
  return made;
}

}  // namespace lockstep
