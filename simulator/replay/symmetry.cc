#include "simulator/replay/symmetry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.h"
#include "simulator/replay/refinement.h"

namespace lockstep {
namespace {

/// What a slot or a constraint meets: its class and how it does.
using Neighbourhood = std::vector<std::uint64_t>;

std::uint64_t met(std::int32_t of_class, std::int32_t how) {
  return static_cast<std::uint64_t>(of_class) << 32 | static_cast<std::uint32_t>(how);
}

/// A number for each coefficient, one entry a term; most often all are 1.
std::vector<std::int32_t> numbers_of_coefficients(const FlowGraph& graph) {
  std::map<double, std::int32_t> known;
  std::vector<std::int32_t> number;
  number.reserve(graph.term.size());
  for (std::size_t i = 0; i < graph.term.size(); ++i) {
    const double coefficient = graph.term[i].coefficient;
    number.push_back(i > 0 && coefficient == graph.term[i - 1].coefficient
                         ? number.back()
                         : known.try_emplace(coefficient, static_cast<std::int32_t>(known.size()))
                               .first->second);
  }
  return number;
}

/// Whether two are the same but for the order, which they most often have in common. Sorts them if
/// need be.
bool same(Neighbourhood& a, Neighbourhood& b) {
  if (a == b) {
    return true;
  }
  if (a.size() != b.size()) {
    return false;
  }
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

/// For each constraint the slots that cross it, in order, and by which of the graph's terms.
struct Crossings {
  std::vector<std::int32_t> begin, slot, term;

  explicit Crossings(const FlowGraph& graph)
      : begin(graph.capacity.size() + 1), slot(graph.term.size()), term(graph.term.size()) {
    for (const MaxMin::Term& each : graph.term) {
      ++begin[each.constraint.index() + 1];
    }
    for (std::size_t i = 1; i < begin.size(); ++i) {
      begin[i] += begin[i - 1];
    }
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t s = 0; s < graph.slots.size(); ++s) {
      for (std::int32_t t = graph.term_begin[s]; t < graph.term_begin[s + 1]; ++t) {
        const auto place = at(next[graph.term[at(t)].constraint.index()]++);
        slot[place] = static_cast<std::int32_t>(s);
        term[place] = t;
      }
    }
  }
};

bool same_numbers(const FlowGraph& graph, std::size_t i, std::size_t j) {
  const FlowGraph::Slot &a = graph.slots[i], &b = graph.slots[j];
  return a.bits == b.bits && a.latency == b.latency && a.start_latency == b.start_latency &&
         a.forward_latency == b.forward_latency && a.entry == b.entry && a.count == b.count &&
         a.kind == b.kind && a.copies == b.copies &&
         (graph.limits.empty() || graph.limits[i] == graph.limits[j]);
}

/// The first element of each class.
std::vector<std::int32_t> first_of(const std::vector<std::int32_t>& classes, std::int32_t count) {
  std::vector<std::int32_t> first(at(count), -1);
  for (std::size_t i = classes.size(); i-- > 0;) {
    first[at(classes[i])] = static_cast<std::int32_t>(i);
  }
  return first;
}

std::int32_t class_of(const Partition& partition, std::int32_t place) {
  return place < 0 ? -1 : partition.place_class[at(place)];
}

/// Whether places of a class have the same colour and the same slots about them.
bool equitable_places(const FlowGraph& graph, const Partition& partition,
                      std::span<const std::uint64_t> colours) {
  std::vector<Neighbourhood> about(graph.place_colour.size());
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const FlowGraph::Slot& slot = graph.slots[i];
    if (slot.source >= 0) {
      about[at(slot.source)].push_back(met(partition.slot_class[i], 1));
    }
    if (slot.destination >= 0) {
      about[at(slot.destination)].push_back(met(partition.slot_class[i], 2));
    }
  }
  const auto first = first_of(partition.place_class, partition.place_classes);
  for (std::size_t p = 0; p < about.size(); ++p) {
    const std::size_t of = at(first[at(partition.place_class[p])]);  // not after p
    if (graph.place_colour[p] != graph.place_colour[of] ||
        (!colours.empty() && colours[p] != colours[of]) ||
        (of != p && !same(about[p], about[of]))) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Partition> find_symmetry(const FlowGraph& graph, const Partition* known,
                                       std::span<const std::uint64_t> colours) {
  if (known != nullptr && known->slot_class.size() == graph.slots.size() &&
      known->constraint_class.size() == graph.capacity.size() &&
      known->place_class.size() == graph.place_colour.size() && equitable(graph, *known, colours)) {
    return *known;
  }
  std::optional<Partition> partition =
      refine(graph, static_cast<std::int32_t>(graph.slots.size() / 2), colours);
  return partition && equitable(graph, *partition, colours) ? std::move(partition) : std::nullopt;
}

bool equitable(const FlowGraph& graph, const Partition& partition,
               std::span<const std::uint64_t> colours) {
  const auto first_slot = first_of(partition.slot_class, partition.slot_classes);
  const std::vector<std::int32_t> coefficient = numbers_of_coefficients(graph);
  Neighbourhood here, there;
  const auto terms_of = [&](std::size_t slot, Neighbourhood& list) {
    list.clear();
    for (std::int32_t t = graph.term_begin[slot]; t < graph.term_begin[slot + 1]; ++t) {
      list.push_back(met(partition.constraint_class[graph.term[at(t)].constraint.index()],
                         coefficient[at(t)]));
    }
  };
  const auto waits_of = [&](std::size_t slot, Neighbourhood& list) {
    list.clear();
    for (const SlotWait& wait : graph.waits(slot)) {
      list.push_back(met(partition.slot_class[at(wait.slot)], wait.lag));
    }
  };
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const std::size_t first = at(first_slot[at(partition.slot_class[i])]);
    if (first == i) {
      continue;
    }
    if (!same_numbers(graph, i, first)) {
      return false;
    }
    terms_of(i, here);
    terms_of(first, there);
    if (!same(here, there)) {
      return false;
    }
    waits_of(i, here);
    waits_of(first, there);
    if (!same(here, there) ||
        class_of(partition, graph.slots[i].source) !=
            class_of(partition, graph.slots[first].source) ||
        class_of(partition, graph.slots[i].destination) !=
            class_of(partition, graph.slots[first].destination)) {
      return false;
    }
  }
  const Crossings crossings(graph);
  const auto slots_of = [&](std::size_t constraint, Neighbourhood& list) {
    list.clear();
    for (std::size_t i = at(crossings.begin[constraint]); i < at(crossings.begin[constraint + 1]);
         ++i) {
      list.push_back(
          met(partition.slot_class[at(crossings.slot[i])], coefficient[at(crossings.term[i])]));
    }
  };
  const auto first_constraint = first_of(partition.constraint_class, partition.constraint_classes);
  for (std::size_t c = 0; c < graph.capacity.size(); ++c) {
    const std::size_t first = at(first_constraint[at(partition.constraint_class[c])]);
    if (first == c) {
      continue;
    }
    slots_of(c, here);
    slots_of(first, there);
    if (graph.capacity[c] != graph.capacity[first] || !same(here, there) ||
        (!graph.constraint_colour.empty() &&
         graph.constraint_colour[c] != graph.constraint_colour[first])) {
      return false;
    }
  }
  return equitable_places(graph, partition, colours);
}

FlowGraph fold(const FlowGraph& graph, const Partition& partition) {
  FlowGraph folded;
  const auto first_slot = first_of(partition.slot_class, partition.slot_classes);
  const auto first_constraint = first_of(partition.constraint_class, partition.constraint_classes);
  for (const std::int32_t constraint : first_constraint) {
    folded.capacity.push_back(graph.capacity[at(constraint)]);
  }
  // What the slots of each class take of the first constraint of each class, together.
  const Crossings crossings(graph);
  std::vector<std::vector<std::pair<std::int32_t, double>>> taken(at(partition.constraint_classes));
  for (std::size_t c = 0; c < taken.size(); ++c) {
    const std::size_t constraint = at(first_constraint[c]);
    for (std::size_t i = at(crossings.begin[constraint]); i < at(crossings.begin[constraint + 1]);
         ++i) {
      taken[c].emplace_back(partition.slot_class[at(crossings.slot[i])],
                            graph.term[at(crossings.term[i])].coefficient);
    }
    std::ranges::sort(taken[c]);
  }
  const auto coefficient = [&](std::int32_t constraint_class, std::int32_t slot_class) {
    const auto& list = taken[at(constraint_class)];
    double sum = 0;
    for (auto place = std::ranges::lower_bound(list, slot_class, {},
                                               &std::pair<std::int32_t, double>::first);
         place != list.end() && place->first == slot_class; ++place) {
      sum += place->second;
    }
    return sum;
  };
  folded.slots.resize(at(partition.slot_classes));
  for (const std::int32_t place : first_of(partition.place_class, partition.place_classes)) {
    folded.place_colour.push_back(graph.place_colour[at(place)]);
  }
  std::vector<std::int32_t> seen;
  for (std::int32_t c = 0; c < partition.slot_classes; ++c) {
    const std::size_t slot = at(first_slot[at(c)]);
    folded.slots[at(c)] = graph.slots[slot];
    folded.slots[at(c)].copies = 0;
    if (!graph.limits.empty()) {
      folded.limits.push_back(graph.limits[slot]);
    }
    folded.slots[at(c)].source = class_of(partition, graph.slots[slot].source);
    folded.slots[at(c)].destination = class_of(partition, graph.slots[slot].destination);
    seen.clear();
    for (const MaxMin::Term& term : graph.terms(slot)) {
      const std::int32_t constraint = partition.constraint_class[term.constraint.index()];
      if (std::ranges::find(seen, constraint) == seen.end()) {
        seen.push_back(constraint);
        folded.term.push_back({ConstraintId(constraint), coefficient(constraint, c)});
      }
    }
    folded.term_begin.push_back(static_cast<std::int32_t>(folded.term.size()));
    for (const SlotWait& wait : graph.waits(slot)) {
      const SlotWait mapped{partition.slot_class[at(wait.slot)], wait.lag};
      const auto begin = folded.wait.begin() + folded.wait_begin.back();
      if (std::find(begin, folded.wait.end(), mapped) == folded.wait.end()) {
        folded.wait.push_back(mapped);
      }
    }
    folded.wait_begin.push_back(static_cast<std::int32_t>(folded.wait.size()));
  }
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    folded.slots[at(partition.slot_class[i])].copies += graph.slots[i].copies;
  }
  return folded;
}

}  // namespace lockstep
