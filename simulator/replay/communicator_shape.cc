#include "simulator/replay/communicator_shape.h"

#include <algorithm>
#include <bit>

#include "base/index.h"
#include "simulator/replay/step_fold.h"

namespace lockstep {
namespace {

/// Turns pairs (row, value), in order of the rows, to CSR.
void to_rows(std::size_t rows, const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs,
             std::vector<std::int32_t>& begin, std::vector<std::int32_t>& values) {
  begin.assign(rows + 1, 0);
  for (const auto& [row, value] : pairs) {
    ++begin[at(row) + 1];
  }
  for (std::size_t i = 1; i < begin.size(); ++i) {
    begin[i] += begin[i - 1];
  }
  values.resize(pairs.size());
  std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
  for (const auto& [row, value] : pairs) {
    values[at(next[at(row)]++)] = value;
  }
}

/// 4 B a slot and constraint of the fold.
class Shapes {
 public:
  explicit Shapes(const StepFold& fold)
      : fold_(fold),
        local_constraint_(fold.graph.capacity.size(), -1),
        local_slot_(fold.graph.slots.size(), -1) {}

  CommunicatorShape of(std::size_t communicator, std::vector<std::int32_t>& constraints) {
    const StepFold::Communicator& what = fold_.communicators[communicator];
    CommunicatorShape shape;
    constraints.clear();
    shape.shares = what.shares;
    std::size_t terms = 0, waits = 0;
    for (std::size_t i = 0; i < what.slots.size(); ++i) {
      local_slot_[at(what.slots[i])] = static_cast<std::int32_t>(i);
      terms += fold_.graph.terms(at(what.slots[i])).size();
      waits += fold_.graph.waits(at(what.slots[i])).size();
    }
    shape.slots.reserve(what.slots.size());
    shape.term_begin.reserve(what.slots.size() + 1);
    shape.wait_begin.reserve(what.slots.size() + 1);
    shape.term.reserve(terms);
    shape.wait.reserve(waits);
    const auto place_of = [&](std::int32_t of_class) {
      return of_class < 0
                 ? -1
                 : static_cast<std::int32_t>(std::ranges::lower_bound(what.classes, of_class) -
                                             what.classes.begin());
    };
    waiters_.clear();
    from_.clear();
    for (std::size_t i = 0; i < what.slots.size(); ++i) {
      const std::size_t global = at(what.slots[i]);
      const FlowGraph::Slot& slot = fold_.graph.slots[global];
      shape.slots.push_back({slot.bits, slot.latency, slot.start_latency, slot.forward_latency,
                             slot.count, place_of(slot.source), place_of(slot.destination),
                             fold_.ends[global].leave, fold_.ends[global].reach});
      for (const MaxMin::Term& term : fold_.graph.terms(global)) {
        std::int32_t& local = local_constraint_[term.constraint.index()];
        if (local < 0) {
          local = static_cast<std::int32_t>(constraints.size());
          constraints.push_back(term.constraint.value);
          shape.capacity.push_back(fold_.graph.capacity[term.constraint.index()]);
        }
        shape.term.push_back({ConstraintId(local), term.coefficient});
      }
      shape.term_begin.push_back(static_cast<std::int32_t>(shape.term.size()));
      for (const SlotWait& wait : fold_.graph.waits(global)) {
        shape.wait.push_back({local_slot_[at(wait.slot)], wait.lag});
        waiters_.emplace_back(shape.wait.back().slot, static_cast<std::int32_t>(i));
      }
      shape.wait_begin.push_back(static_cast<std::int32_t>(shape.wait.size()));
      if (shape.slots.back().source >= 0) {
        from_.emplace_back(shape.slots.back().source, static_cast<std::int32_t>(i));
      } else {
        shape.has_switches = true;
      }
    }
    to_rows(what.slots.size(), waiters_, shape.waiter_begin, shape.waiter);
    to_rows(what.classes.size(), from_, shape.from_begin, shape.from);
    for (const std::int32_t constraint : constraints) {
      local_constraint_[at(constraint)] = -1;
    }
    for (const std::int32_t slot : what.slots) {
      local_slot_[at(slot)] = -1;
    }
    return shape;
  }

 private:
  const StepFold& fold_;
  std::vector<std::int32_t> local_constraint_, local_slot_;            // -1 but for the one at hand
  std::vector<std::pair<std::int32_t, std::int32_t>> waiters_, from_;  // scratch
};

}  // namespace

std::vector<std::int64_t> CommunicatorShape::key() const {
  std::vector<std::int64_t> key;
  key.reserve(4 + capacity.size() + slots.size() * 11 + term.size() * 2 + wait.size() * 2 +
              shares.size());
  for (const std::size_t size : {capacity.size(), slots.size(), shares.size()}) {
    key.push_back(static_cast<std::int64_t>(size));
  }
  for (const double each : capacity) {
    key.push_back(std::bit_cast<std::int64_t>(each));
  }
  key.insert(key.end(), shares.begin(), shares.end());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    key.insert(key.end(), {std::bit_cast<std::int64_t>(slot.bits), slot.latency.count_ps(),
                           slot.start_latency.count_ps(), slot.forward_latency.count_ps(),
                           slot.count, slot.source, slot.destination, slot.leave, slot.reach,
                           std::ssize(terms(i)), std::ssize(waits(i))});
    for (const MaxMin::Term& each : terms(i)) {
      key.push_back(each.constraint.value);
      key.push_back(std::bit_cast<std::int64_t>(each.coefficient));
    }
    for (const SlotWait& each : waits(i)) {
      key.push_back(each.slot);
      key.push_back(each.lag);
    }
  }
  return key;
}

std::vector<ShapedCommunicator> shapes_of(const StepFold& fold) {
  Shapes shapes(fold);
  std::vector<ShapedCommunicator> all(fold.communicators.size());
  for (std::size_t c = 0; c < all.size(); ++c) {
    all[c].shape = shapes.of(c, all[c].constraints);
    all[c].key = all[c].shape.key();
  }
  return all;
}

}  // namespace lockstep
