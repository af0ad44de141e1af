#include "simulator/replay/parallel_slots.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/index.h"

namespace lockstep {
namespace {

std::vector<std::int32_t> each_apart(std::size_t size) {
  std::vector<std::int32_t> classes(size);
  std::iota(classes.begin(), classes.end(), 0);
  return classes;
}

/// An order by all that a slot has of its own.
bool before(const FlowGraph& graph, std::size_t i, std::size_t j) {
  const auto numbers = [&](std::size_t slot) {
    const FlowGraph::Slot& s = graph.slots[slot];
    return std::tuple(s.source, s.destination, s.kind, s.count, s.copies, s.bits, s.latency,
                      s.start_latency, s.forward_latency, s.entry);
  };
  const auto a = numbers(i), b = numbers(j);
  if (a != b) {
    return a < b;
  }
  return std::ranges::lexicographical_compare(
      graph.terms(i), graph.terms(j), {},
      [](const MaxMin::Term& term) { return std::pair(term.constraint.index(), term.coefficient); },
      [](const MaxMin::Term& term) {
        return std::pair(term.constraint.index(), term.coefficient);
      });
}

/// Finds the classes of one collective's slots after another.
class UnitClasses {
 public:
  explicit UnitClasses(const FlowGraph& graph)
      : graph_(graph), first_(each_apart(graph.slots.size())) {}

  void find(const StepLayout::Unit& unit) {
    slots_.resize(at(unit.slots));
    std::iota(slots_.begin(), slots_.end(), unit.first_slot);
    std::ranges::sort(slots_, [&](std::int32_t i, std::int32_t j) {
      return before(graph_, at(i), at(j)) || (!before(graph_, at(j), at(i)) && i < j);
    });
    groups_.clear();
    split(0, slots_.size(), [&](std::size_t i, std::size_t j) {
      return before(graph_, at(slots_[i]), at(slots_[j]));
    });
    for (bool grown = true; grown;) {
      grown = split_by_waits();
    }
  }

  /// Of each slot the first one of its class.
  const std::vector<std::int32_t>& first() const { return first_; }

 private:
  using Waits = std::vector<std::pair<std::int32_t, std::int32_t>>;  // class, lag: sorted

  /// What is in order in [begin, end) and differs from its neighbour begins a class.
  template <class Before>
  std::size_t split(std::size_t begin, std::size_t end, Before&& differ) {
    std::size_t parts = 0;
    for (std::size_t part = begin, next = begin; part < end; part = next, ++parts) {
      for (next = part + 1; next < end && !differ(part, next); ++next) {
      }
      for (std::size_t i = part; i < next; ++i) {
        first_[at(slots_[i])] = slots_[part];
      }
      if (next - part > 1) {
        groups_.emplace_back(part, next);
      }
    }
    return parts;
  }

  bool split_by_waits() {
    bool grown = false;
    const std::vector<std::pair<std::size_t, std::size_t>> groups = std::move(groups_);
    groups_.clear();
    std::vector<std::pair<Waits, std::int32_t>> members;
    for (const auto& [begin, end] : groups) {
      members.clear();
      for (std::size_t i = begin; i < end; ++i) {
        Waits& waits = members.emplace_back(Waits(), slots_[i]).first;
        for (const SlotWait& wait : graph_.waits(at(slots_[i]))) {
          waits.emplace_back(first_[at(wait.slot)], wait.lag);
        }
        std::ranges::sort(waits);
      }
      std::ranges::sort(members);
      for (std::size_t i = begin; i < end; ++i) {
        slots_[i] = members[i - begin].second;
      }
      grown = split(begin, end,
                    [&, from = begin](std::size_t i, std::size_t j) {
                      return members[i - from].first != members[j - from].first;
                    }) > 1 ||
              grown;
    }
    return grown;
  }

  const FlowGraph& graph_;
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> slots_;                          // of the unit, classes together
  std::vector<std::pair<std::size_t, std::size_t>> groups_;  // classes of several
};

}  // namespace

Partition parallel_slots(const StepLayout& layout) {
  const FlowGraph& graph = layout.graph;
  Partition partition;
  partition.constraint_class = each_apart(graph.capacity.size());
  partition.constraint_classes = static_cast<std::int32_t>(graph.capacity.size());
  partition.place_class = each_apart(graph.place_colour.size());
  partition.place_classes = static_cast<std::int32_t>(graph.place_colour.size());
  UnitClasses classes(graph);
  for (const StepLayout::Unit& unit : layout.units) {
    if (unit.slots > 1 && graph.limits.empty()) {
      classes.find(unit);
    }
  }
  // Numbered as they appear.
  partition.slot_class.assign(graph.slots.size(), -1);
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const std::size_t first = at(classes.first()[i]);
    if (partition.slot_class[first] < 0) {
      partition.slot_class[first] = partition.slot_classes++;
    }
    partition.slot_class[i] = partition.slot_class[first];
  }
  return partition;
}

}  // namespace lockstep
