#include "simulator/replay/recurrence_run.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/index.h"
#include "simulator/network/flow/fluid_network.h"

namespace lockstep {
namespace {

using Ps = std::int64_t;

constexpr std::int32_t kMostLag = 64;
constexpr Ps kLatest = std::int64_t{1} << 62;

bool is_suitable(const FlowGraph& graph) {
  if (graph.slots.empty() || !graph.limits.empty()) {
    return false;
  }
  std::vector<bool> crossed(graph.capacity.size());
  for (const MaxMin::Term& term : graph.term) {
    if (crossed[term.constraint.index()]) {
      return false;
    }
    crossed[term.constraint.index()] = true;
  }
  return std::ranges::all_of(graph.slots, [](const auto& slot) { return slot.bits > 0; }) &&
         std::ranges::all_of(graph.wait, [](const SlotWait& wait) {
           return wait.lag >= 0 && wait.lag <= kMostLag;
         });
}

/// An order in which a slot comes after those whose same transfer it waits for; empty if they wait
/// in a circle.
std::vector<std::int32_t> order_of(const FlowGraph& graph) {
  std::vector<std::int32_t> order, open(graph.slots.size());
  std::vector<std::vector<std::int32_t>> next(graph.slots.size());
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    for (const SlotWait& wait : graph.waits(i)) {
      if (wait.lag == 0) {
        ++open[i];
        next[at(wait.slot)].push_back(static_cast<std::int32_t>(i));
      }
    }
  }
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    if (open[i] == 0) {
      order.push_back(static_cast<std::int32_t>(i));
    }
  }
  for (std::size_t done = 0; done < order.size(); ++done) {
    for (const std::int32_t slot : next[at(order[done])]) {
      if (--open[at(slot)] == 0) {
        order.push_back(slot);
      }
    }
  }
  return order.size() == graph.slots.size() ? order : std::vector<std::int32_t>();
}

/// The slots, in that order, of each set that is connected by waits: what does not meet has periods
/// of its own.
std::vector<std::vector<std::int32_t>> components(const FlowGraph& graph,
                                                  const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> leader(graph.slots.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::int32_t slot) {
    while (leader[at(slot)] != slot) {
      slot = leader[at(slot)] = leader[at(leader[at(slot)])];
    }
    return slot;
  };
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    for (const SlotWait& wait : graph.waits(i)) {
      const std::int32_t a = find(static_cast<std::int32_t>(i)), b = find(wait.slot);
      leader[at(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::vector<std::int32_t>> result;
  std::vector<std::int32_t> number(graph.slots.size(), -1);
  for (const std::int32_t slot : order) {
    std::int32_t& component = number[at(find(slot))];
    if (component < 0) {
      component = static_cast<std::int32_t>(result.size());
      result.emplace_back();
    }
    result[at(component)].push_back(slot);
  }
  return result;
}

/// How long each slot sends a transfer, and at what rate: all at once, since they do not meet.
std::vector<Ps> sending_times(const FlowGraph& graph, std::vector<std::int64_t>& rate) {
  FluidNetwork network;
  for (const double capacity : graph.capacity) {
    network.add_constraint(capacity);
  }
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    network.connect(graph.terms(i));
    network.start(ConnectionId(i), graph.slots[i].bits, Time(), Time(), i);
  }
  network.next_change();  // finds the rates
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    rate.push_back(network.rates().rate_units(VariableId(i)));
  }
  std::vector<Ps> sent(graph.slots.size());
  std::vector<NetworkEvent> events;
  while (events.clear(), network.advance(Time::max(), events), !events.empty()) {
    for (const NetworkEvent& event : events) {
      sent[event.tag] = event.when.count_ps();
    }
  }
  return sent;
}

/// One component. It may be begun again, with the memory of before.
class Recurrence {
 public:
  /// `entry` and `done`, which may be empty, are of each slot of the graph; what is done was so
  /// before `now`. `place` is scratch with an element for each.
  void begin(const FlowGraph& graph, const std::vector<std::int32_t>& order,
             const std::vector<Ps>& sending, std::span<const Time> entry,
             std::span<const std::int32_t> done, Time now) {
    graph_ = &graph;
    order_ = order;
    slots_ = order.size();
    sent_.assign(slots_, 0);
    last_.assign(slots_, 0);
    place_.resize(graph.slots.size());
    for (std::size_t i = 0; i < slots_; ++i) {
      place_[at(order[i])] = static_cast<std::int32_t>(i);
    }
    rounds_ = simulated_rounds_ = first_ = 0;
    fewest_ = INT32_MAX;
    last_entry_ = 0;
    kept_round_ = -1;
    next_keep_ = 1;
    jumped_ = false;
    rows_.clear();
    waits_.clear();
    std::int32_t longest = 0;
    rows_.reserve(slots_);
    for (const std::int32_t index : order) {
      const FlowGraph::Slot& slot = graph.slots[at(index)];
      rows_.push_back({.sending = sending[at(index)],
                       .latency = slot.latency.count_ps(),
                       .start = slot.start_latency.count_ps(),
                       .forward = slot.forward_latency.count_ps(),
                       .entry = entry[at(index)].count_ps(),
                       .count = slot.count,
                       .done = done.empty() ? 0 : done[at(index)],
                       .wait = static_cast<std::int32_t>(waits_.size())});
      for (const SlotWait& wait : graph.waits(at(index))) {
        waits_.push_back({place_[at(wait.slot)], wait.lag});
        longest = std::max(longest, wait.lag);
      }
      rounds_ = std::max(rounds_, slot.count);
      first_ = std::max(first_, rows_.back().done);
      fewest_ = std::min(fewest_, slot.count);
      last_entry_ = std::max(last_entry_, entry[at(index)].count_ps());
    }
    rows_.push_back({.wait = static_cast<std::int32_t>(waits_.size())});
    past_ = now.count_ps();
    depth_ = std::bit_ceil(at(longest) + 1);
    delivered_.assign(depth_ * slots_, 0);
  }

  /// False where it gets too late for sums to be safe.
  bool run() {
    for (std::int32_t k = 0; k < rounds_; ++k) {
      if (!round(k)) {
        return false;
      }
      ++simulated_rounds_;
      if (fewest_ == rounds_ && at(k) + 1 >= depth_ && !jumped_) {
        k = look_for_repetition(k);
      }
    }
    return true;
  }

  void tell(FlowGraphTimes& times) const {
    for (std::size_t i = 0; i < slots_; ++i) {
      const FlowGraph::Slot& slot = graph_->slots[at(order_[i])];
      times.sent[at(order_[i])] = Time::ps(sent_[i]);
      times.delivered[at(order_[i])] = Time::ps(last_[i]);
      times.transfers += slot.count * slot.copies;
      times.simulated += std::min(slot.count, simulated_rounds_);
    }
  }

 private:
  struct Row {
    Ps sending = 0, latency = 0, start = 0, forward = 0, entry = 0;
    std::int32_t count = 0, done = 0, wait = 0;
  };

  Ps* delivered(std::int32_t k) { return &delivered_[(at(k) & (depth_ - 1)) * slots_]; }

  bool round(std::int32_t k) {
    Ps* const now = delivered(k);
    Ps latest = 0;
    for (std::size_t i = 0; i < slots_; ++i) {
      const Row& row = rows_[i];
      if (k >= row.count) {
        continue;
      }
      if (k < row.done) {
        sent_[i] = now[i] = last_[i] = past_;
        continue;
      }
      Ps start = row.entry;
      bool forwards = false;
      for (std::int32_t w = row.wait; w < rows_[i + 1].wait; ++w) {
        const SlotWait& wait = waits_[at(w)];
        const std::int32_t needed = k - wait.lag;
        if (needed >= 0) {
          forwards = true;
          const std::size_t of = at(wait.slot);
          start = std::max(start, needed < rows_[of].count ? delivered(needed)[of] : last_[of]);
        }
      }
      start += forwards ? row.forward : row.start;
      sent_[i] = std::max(start, sent_[i]) + row.sending;
      now[i] = last_[i] = sent_[i] + row.latency;
      latest = std::max(latest, now[i]);
    }
    return latest < kLatest;
  }

  /// After round k: compares with the state that is kept, and jumps if it is the same; returns the
  /// round after which to go on.
  std::int32_t look_for_repetition(std::int32_t k) {
    if (kept_round_ >= 0 && same_as_kept(k)) {
      jumped_ = true;
      const std::int32_t period = k - kept_round_;
      const std::int32_t periods = (rounds_ - 1 - k) / period;
      const Ps shift = delivered(k)[0] - kept_[0];
      if (periods == 0 || shift > (kLatest - last_[0]) / periods) {
        return k;
      }
      jump(k, k + periods * period, shift * periods);
      return k + periods * period;
    }
    if (k + 1 >= next_keep_ && k >= first_ + static_cast<std::int32_t>(depth_) &&
        last_entry_ <= *std::ranges::min_element(sent_)) {
      next_keep_ = 2 * (k + 1);
      kept_round_ = k;
      kept_.clear();
      for (std::size_t back = 0; back < depth_; ++back) {
        const Ps* const row = delivered(k - static_cast<std::int32_t>(back));
        kept_.insert(kept_.end(), row, row + slots_);
      }
    }
    return k;
  }

  bool same_as_kept(std::int32_t k) {
    const Ps shift = delivered(k)[0] - kept_[0];
    for (std::size_t back = 0; back < depth_; ++back) {
      const Ps* const row = delivered(k - static_cast<std::int32_t>(back));
      for (std::size_t i = 0; i < slots_; ++i) {
        if (row[i] - kept_[back * slots_ + i] != shift) {
          return false;
        }
      }
    }
    return true;
  }

  void jump(std::int32_t from, std::int32_t to, Ps by) {
    moved_.resize(delivered_.size());
    moved_.swap(delivered_);
    for (std::size_t back = 0; back < depth_; ++back) {
      const auto k = static_cast<std::int32_t>(back);
      const Ps* const row = &moved_[(at(from - k) & (depth_ - 1)) * slots_];
      std::transform(row, row + slots_, delivered(to - k), [&](Ps time) { return time + by; });
    }
    for (std::size_t i = 0; i < slots_; ++i) {
      sent_[i] += by;
      last_[i] += by;
    }
  }

  const FlowGraph* graph_ = nullptr;
  std::span<const std::int32_t> order_;
  std::vector<std::int32_t> place_;  ///< by slot of the graph
  std::size_t slots_ = 0, depth_ = 1;
  std::vector<Row> rows_;        ///< in order_of(), and one that ends the waits
  std::vector<SlotWait> waits_;  ///< slots by their place in that order
  std::vector<Ps> sent_, last_;  ///< of each slot's last transfer: sent, delivered
  std::vector<Ps> delivered_;    ///< of the last depth_ rounds
  std::vector<Ps> moved_;        ///< scratch of the same size
  std::int32_t rounds_ = 0, fewest_ = INT32_MAX, simulated_rounds_ = 0;
  Ps last_entry_ = 0, past_ = 0;
  std::int32_t first_ = 0;  ///< the round that no slot has done
  std::vector<Ps> kept_;    ///< delivered, the latest round first
  std::int32_t kept_round_ = -1, next_keep_ = 1;
  bool jumped_ = false;
};

}  // namespace

std::optional<PreparedRecurrence> PreparedRecurrence::of(FlowGraph graph) {
  if (!is_suitable(graph)) {
    return std::nullopt;
  }
  const std::vector<std::int32_t> order = order_of(graph);
  if (order.empty()) {
    return std::nullopt;
  }
  PreparedRecurrence prepared;
  prepared.components_ = components(graph, order);
  prepared.sending_ = sending_times(graph, prepared.rate_);
  prepared.graph_ = std::move(graph);
  return prepared;
}

bool PreparedRecurrence::run(std::span<const Time> entry, std::span<const std::int32_t> done,
                             Time now, FlowGraphTimes& times) const {
  times.sent.resize(graph_.slots.size());
  times.delivered.resize(graph_.slots.size());
  times.transfers = times.simulated = 0;
  static thread_local Recurrence recurrence;  // collectives are told by the ten thousand
  for (const std::vector<std::int32_t>& component : components_) {
    recurrence.begin(graph_, component, sending_, entry, done, now);
    if (!recurrence.run()) {
      return false;
    }
    recurrence.tell(times);
  }
  return true;
}

std::vector<PreparedRecurrence::SlotState> PreparedRecurrence::at(
    std::span<const Time> entry, std::span<const std::int32_t> done, Time moment) const {
  const std::size_t slots = graph_.slots.size();
  const Time past = std::ranges::min(entry);
  std::int32_t longest = 0, rounds = 0;
  for (const SlotWait& wait : graph_.wait) {
    longest = std::max(longest, wait.lag);
  }
  for (const FlowGraph::Slot& slot : graph_.slots) {
    rounds = std::max(rounds, slot.count);
  }
  // Times after the moment are Time::max(): nothing that has happened waits for them.
  const std::size_t depth = std::bit_ceil(lockstep::at(longest) + 1);
  std::vector<Time> delivered(depth * slots), started(slots), sent(slots), last(slots);
  std::vector<SlotState> state(slots);
  bool goes_on = true;
  for (std::int32_t k = 0; k < rounds && goes_on; ++k) {
    goes_on = false;
    const auto row = [&](std::int32_t round) {
      return &delivered[(lockstep::at(round) & (depth - 1)) * slots];
    };
    for (const std::vector<std::int32_t>& component : components_) {
      for (const std::int32_t index : component) {
        const std::size_t i = lockstep::at(index);
        const FlowGraph::Slot& slot = graph_.slots[i];
        if (k >= slot.count) {
          continue;
        }
        SlotState& its = state[i];
        if (k < done[i]) {
          its.started = its.sent = its.delivered = k + 1;
          row(k)[i] = last[i] = sent[i] = started[i] = past;
          goes_on = true;
          continue;
        }
        Time start = std::max(entry[i], started[i]);
        bool forwards = false;
        for (const SlotWait& wait : graph_.waits(i)) {
          const std::int32_t needed = k - wait.lag;
          if (needed >= 0) {
            forwards = true;
            const std::size_t of = lockstep::at(wait.slot);
            start = std::max(start, needed < graph_.slots[of].count ? row(needed)[of] : last[of]);
          }
        }
        started[i] = start;
        if (start > moment) {
          row(k)[i] = last[i] = Time::max();
          continue;
        }
        goes_on = true;
        ++its.started;
        const Time may_begin = start + (forwards ? slot.forward_latency : slot.start_latency);
        if (its.sent < k) {  // the one before has not been sent
          its.may_begin.push_back(may_begin);
          row(k)[i] = last[i] = Time::max();
          continue;
        }
        const Time begin = std::max(may_begin, sent[i]);
        sent[i] = begin + Time::ps(sending_[i]);
        if (sent[i] > moment) {
          its.begin = begin;
          row(k)[i] = last[i] = Time::max();
          continue;
        }
        ++its.sent;
        const Time arrival = sent[i] + slot.latency;
        if (arrival <= moment) {
          ++its.delivered;
        } else {
          its.deliveries.push_back(arrival);
        }
        row(k)[i] = last[i] = arrival;
      }
    }
  }
  return state;
}

std::optional<FlowGraphTimes> run_as_recurrence(const FlowGraph& graph) {
  if (!is_suitable(graph)) {
    return std::nullopt;  // before it is copied: it may be large
  }
  const std::optional<PreparedRecurrence> prepared = PreparedRecurrence::of(graph);
  if (!prepared) {
    return std::nullopt;
  }
  std::vector<Time> entry;
  entry.reserve(graph.slots.size());
  for (const FlowGraph::Slot& slot : graph.slots) {
    entry.push_back(slot.entry);
  }
  FlowGraphTimes times;
  return prepared->run(entry, {}, Time(), times) ? std::optional(std::move(times)) : std::nullopt;
}

}  // namespace lockstep
