#include "simulator/replay/flow_graph_run.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/give_back.h"
#include "simulator/replay/recurrence_run.h"

namespace lockstep {
namespace {

/// Transfers that a slot must have left for repetition to be looked for at its deliveries.
constexpr std::int32_t kWorthwhile = 16;

/// Slots over the same ports from which on a common clock saves more than it costs. Measured: with
/// up to 8 (rings and trees of 8 channels) a run takes up to a tenth longer, with 14 (rings of 16)
/// 0.6 and with 28 (trees of 16) 0.4 of the time.
constexpr std::size_t kWorthBundling = 12;

class Run {
 public:
  Run(const FlowGraph& graph, bool fast_forward) : fast_forward_(fast_forward) {
    for (const double capacity : graph.capacity) {
      network_.add_constraint(capacity);
    }
    network_.leave_out_sent();
    network_.reserve(graph.slots.size(), graph.term.size());
    for (std::size_t i = 0; i < graph.slots.size(); ++i) {
      const ConnectionId connection = network_.connect(graph.terms(i));
      if (!graph.limits.empty()) {
        network_.set_limit(connection, graph.limits[i]);
      }
    }
    if (graph.limits.empty()) {
      bundle(graph);
    }
  }

  /// The rest of it, when the graph's terms are not needed any more.
  void add_slots(const FlowGraph& graph) {
    const std::size_t count = graph.slots.size();
    std::vector<std::int32_t> begin(count + 1);  // of each slot's links
    for (std::size_t i = 0; i < count; ++i) {
      begin[i + 1] += static_cast<std::int32_t>(graph.waits(i).size());
      for (const SlotWait& wait : graph.waits(i)) {
        ++begin[at(wait.slot) + 1];
      }
    }
    for (std::size_t i = 1; i <= count; ++i) {
      begin[i] += begin[i - 1];
    }
    links_.resize(at(begin[count]));
    slots_.resize(count);
    bits_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const FlowGraph::Slot& from = graph.slots[i];
      SlotState& slot = slots_[i];
      slot.count = from.count;
      slot.start_latency = from.start_latency;
      slot.forward_latency = from.forward_latency;
      slot.latency = from.latency;
      slot.entry = from.entry;
      slot.waits = begin[i];
      const auto waits = graph.waits(i);
      slot.waiters = slot.waiters_end = begin[i] + static_cast<std::int32_t>(waits.size());
      std::ranges::copy(waits, links_.begin() + begin[i]);
      bits_[i] = from.bits;
      times_.transfers += from.count * from.copies;
      left_ += from.count;
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (const SlotWait& wait : graph.waits(i)) {
        links_[at(slots_[at(wait.slot)].waiters_end++)] = {static_cast<std::int32_t>(i), 0};
      }
    }
    times_.delivered.resize(count);
  }

  FlowGraphTimes run() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      start_ready(static_cast<std::int32_t>(i), Time());
    }
    std::vector<NetworkEvent> events;
    std::int32_t reference = -1;  // the slot at whose deliveries states are compared
    while (left_ > 0) {
      give_back(events);
      const Time now = network_.advance(Time::max(), events);
      fetch_coming();
      if (events.empty()) {
        stuck();
      }
      bool reference_came = false;
      for (std::size_t e = 0; e < events.size(); ++e) {
        fetch_ahead(events, e);
        const auto index = static_cast<std::int32_t>(events[e].tag);
        SlotState& slot = slots_[at(index)];
        if (++slot.delivered == slot.count) {
          times_.delivered[at(index)] = now;
        }
        --left_;
        ++times_.simulated;
        for (std::int32_t w = slot.waiters; w < slot.waiters_end; ++w) {
          const std::int32_t waiter = links_[at(w)].slot;
          const SlotState& waiting = slots_[at(waiter)];
          if (waiting.blocker == index && slot.delivered >= waiting.needed) {
            start_ready(waiter, now);
          }
        }
        const bool done =
            reference < 0 || slots_[at(reference)].delivered == slots_[at(reference)].count;
        if (done && slot.count - slot.delivered >= kWorthwhile) {
          reference = index;
          saved_.clear();
          steps_ = 0;
          next_save_ = 1;
        }
        reference_came = reference_came || index == reference;
      }
      if (reference_came && fast_forward_) {
        look_for_repetition(now);
      }
    }
    times_.sent.resize(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      times_.sent[i] = times_.delivered[i] - (slots_[i].count > 0 ? slots_[i].latency : Time());
    }
    return std::move(times_);
  }

 private:
  /// Slots over the same ports with the same weights share a rate.
  void bundle(const FlowGraph& graph) {
    const auto hash = [&](std::size_t slot) {
      std::uint64_t mixed = 0;
      for (const MaxMin::Term& term : graph.terms(slot)) {
        mixed =
            (mixed + static_cast<std::uint64_t>(term.constraint.value) + 1) * 0x9e3779b97f4a7c15U;
        mixed ^= std::bit_cast<std::uint64_t>(term.coefficient) >> 7 ^ mixed >> 29;
      }
      return mixed;
    };
    const auto same = [](const MaxMin::Term& a, const MaxMin::Term& b) {
      return a.constraint == b.constraint && a.coefficient == b.coefficient;
    };
    std::vector<std::pair<std::uint64_t, std::int32_t>> order;
    order.reserve(graph.slots.size());
    for (std::size_t i = 0; i < graph.slots.size(); ++i) {
      order.emplace_back(hash(i), static_cast<std::int32_t>(i));
    }
    std::ranges::sort(order);
    std::vector<std::int32_t> alike;
    for (std::size_t i = 0; i < order.size(); i += alike.size()) {
      alike = {order[i].second};
      while (i + alike.size() < order.size() && order[i + alike.size()].first == order[i].first &&
             std::ranges::equal(graph.terms(at(order[i].second)),
                                graph.terms(at(order[i + alike.size()].second)), same)) {
        alike.push_back(order[i + alike.size()].second);
      }
      if (alike.size() >= kWorthBundling) {
        network_.bundle(alike);
      }
    }
  }

  /// Where a slot stands, and what decides when its next transfer starts.
  struct SlotState {
    std::int32_t started = 0, delivered = 0, count = 0;  // transfers
    // The next transfer waits until so many of slot `blocker` are delivered; -1 where none is left.
    std::int32_t blocker = -1, needed = 0;
    // In links_: what it waits for, then who waits for it.
    std::int32_t waits = 0, waiters = 0, waiters_end = 0;
    Time start_latency, forward_latency, latency, entry;
  };
  static_assert(sizeof(SlotState) == 64, "a slot is one cache line");

  /// The same of those of later moments, a miss a moment.
  void fetch_coming() {
    for (const std::uint64_t tag : nearest_) {
      for (std::int32_t w = slots_[tag].waiters; w < slots_[tag].waiters_end; ++w) {
        const std::int32_t waiter = links_[at(w)].slot;
        __builtin_prefetch(&slots_[at(waiter)]);
        network_.fetch(ConnectionId(waiter));
      }
    }
    for (const std::uint64_t tag : nearer_) {
      __builtin_prefetch(links_.data() + slots_[tag].waiters);  // which may be the end
    }
    for (const std::uint64_t tag : network_.coming()) {
      __builtin_prefetch(&slots_[tag]);
    }
    nearest_.swap(nearer_);
    nearer_.swap(network_.coming());
  }

  /// What deliveries of this moment will look at.
  void fetch_ahead(const std::vector<NetworkEvent>& events, std::size_t e) const {
    constexpr std::size_t kStage = 4;  // from one miss to the next that depends on it
    const auto ahead = [&](std::size_t stages) -> const SlotState* {
      const std::size_t place = e + stages * kStage;
      return place < events.size() ? &slots_[events[place].tag] : nullptr;
    };
    if (const SlotState* slot = ahead(3)) {
      __builtin_prefetch(slot);
    }
    if (const SlotState* slot = ahead(2)) {
      __builtin_prefetch(links_.data() + slot->waiters);
    }
    if (const SlotState* slot = ahead(1)) {
      for (std::int32_t w = slot->waiters; w < slot->waiters_end; ++w) {
        __builtin_prefetch(&slots_[at(links_[at(w)].slot)]);
        network_.fetch(ConnectionId(links_[at(w)].slot));
      }
    }
  }

  /// Whether all that the slot's next transfer waits for has come; if not, notes what has not.
  /// `forwards`: it waits for any.
  bool ready(SlotState& slot, bool& forwards) {
    forwards = false;
    for (std::int32_t w = slot.waits; w < slot.waiters; ++w) {
      const SlotWait wait = links_[at(w)];
      const SlotState& other = slots_[at(wait.slot)];
      const std::int32_t needed = wait.needed(slot.started, other.count);
      if (other.delivered < needed) {
        slot.blocker = wait.slot;
        slot.needed = needed;
        return false;
      }
      forwards = forwards || needed > 0;
    }
    slot.blocker = -1;
    return true;
  }

  void start_ready(std::int32_t index, Time now) {
    SlotState& slot = slots_[at(index)];
    slot.blocker = -1;
    for (bool forwards = false; slot.started < slot.count && ready(slot, forwards);
         ++slot.started) {
      const Time latency = forwards ? slot.forward_latency : slot.start_latency;
      network_.start(ConnectionId(index), bits_[at(index)], slot.latency,
                     std::max(now, slot.entry) + latency, static_cast<std::uint64_t>(index));
    }
  }

  /// Compares with the saved state, jumps if it is the same, saves states at powers of two.
  void look_for_repetition(Time now) {
    ++steps_;
    if (!saved_.empty() && network_.same_state(saved_network_) && same_slots()) {
      jump(now);
      saved_.clear();
      steps_ = 0;
      next_save_ = 1;
      return;
    }
    if (steps_ == next_save_) {
      next_save_ *= 2;
      saved_ = slots_;
      saved_time_ = now;
      network_.save_state(saved_network_);
    }
  }

  /// Whether what each slot has received relative to what it has sent is as it was.
  bool same_slots() const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].delivered - slots_[i].started != saved_[i].delivered - saved_[i].started) {
        return false;
      }
    }
    return true;
  }

  std::int32_t step_of(std::size_t slot) const {
    return slots_[slot].started - saved_[slot].started;
  }

  /// How many periods may be jumped: every slot that moves keeps a transfer to do, and each wait is
  /// of the kind that repeats.
  std::int64_t periods() const {
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::int64_t step = step_of(i), started = slots_[i].started;
      if (step > 0) {
        most = std::min(most, (slots_[i].count - 1 - started) / step);
      }
      for (std::int32_t w = slots_[i].waits; w < slots_[i].waiters; ++w) {
        const SlotWait wait = links_[at(w)];
        const std::int64_t other = step_of(at(wait.slot));
        if (step > 0 && (other != step || saved_[i].started < wait.lag)) {
          return 0;
        }
        if (step == 0 && other > 0 && started < slots_[i].count) {
          // Blocked, and to stay so.
          const std::int64_t needed = wait.needed(slots_[i].started, slots_[at(wait.slot)].count);
          const std::int64_t missing = needed - slots_[at(wait.slot)].delivered;
          most = std::min(most, std::max<std::int64_t>(0, (missing - 1) / other));
        }
      }
    }
    return most == std::numeric_limits<std::int64_t>::max() ? 0 : most;
  }

  void jump(Time now) {
    const std::int64_t count = periods();
    if (count <= 0) {
      return;
    }
    network_.shift((now - saved_time_) * count);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const auto moved = static_cast<std::int32_t>(step_of(i) * count);
      slots_[i].started += moved;
      slots_[i].delivered += moved;
      left_ -= moved;
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].blocker >= 0) {
        bool forwards = false;
        ready(slots_[i], forwards);
      }
    }
  }

  [[noreturn]] void stuck() const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].started < slots_[i].count) {
        throw Error(fmt::format("slot {} can never send transfer {} of {}", i, slots_[i].started,
                                slots_[i].count))
            .hint("look for slots that wait for each other in a circle");
      }
    }
    throw Error("a collective cannot finish");
  }

  bool fast_forward_;
  FluidNetwork network_;
  std::vector<SlotState> slots_, saved_;
  std::vector<std::uint64_t> nearer_, nearest_;  ///< tags of deliveries soon to come
  std::vector<double> bits_;                     ///< of a slot's transfers
  FluidNetwork::Snapshot saved_network_;
  Time saved_time_;
  std::int64_t steps_ = 0, next_save_ = 1;
  std::vector<SlotWait> links_;  ///< what slots wait for (waiters: without lags)
  FlowGraphTimes times_;
  std::int64_t left_ = 0;
};

}  // namespace

FlowGraphTimes run_flow_graph(const FlowGraph& graph, bool fast_forward) {
  if (fast_forward) {
    if (auto times = run_as_recurrence(graph)) {
      return *std::move(times);
    }
  }
  Run run(graph, fast_forward);
  run.add_slots(graph);
  return run.run();
}

FlowGraphTimes run_flow_graph(FlowGraph&& graph, bool fast_forward) {
  if (fast_forward) {
    if (auto times = run_as_recurrence(graph)) {
      return *std::move(times);
    }
  }
  Run run(graph, fast_forward);
  graph.term = std::vector<MaxMin::Term>();  // the network has them now
  graph.term_begin = std::vector<std::int32_t>();
  run.add_slots(graph);
  graph = FlowGraph();
  return run.run();
}

}  // namespace lockstep
