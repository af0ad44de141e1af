#include "simulator/replay/flow_graph_run.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/replay/recurrence_run.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// Transfers that a slot must have left for repetition to be looked for at its deliveries.
constexpr std::int32_t kWorthwhile = 16;

class Run {
 public:
  Run(const FlowGraph& graph, bool fast_forward)
      : graph_(graph), fast_forward_(fast_forward), state_(graph.slots.size()) {
    for (const double capacity : graph.capacity) {
      network_.add_constraint(capacity);
    }
    waiter_begin_.assign(graph.slots.size() + 1, 0);
    for (const SlotWait& wait : graph.wait) {
      ++waiter_begin_[at(wait.slot) + 1];
    }
    for (std::size_t i = 1; i < waiter_begin_.size(); ++i) {
      waiter_begin_[i] += waiter_begin_[i - 1];
    }
    waiter_.resize(graph.wait.size());
    std::vector<std::int32_t> next(waiter_begin_.begin(), waiter_begin_.end() - 1);
    network_.reserve(graph.slots.size(), graph.term.size());
    times_.sent.resize(graph.slots.size());
    times_.delivered.resize(graph.slots.size());
    for (std::size_t i = 0; i < graph.slots.size(); ++i) {
      const ConnectionId connection = network_.connect(graph.terms(i));
      if (!graph.limits.empty()) {
        network_.set_limit(connection, graph.limits[i]);
      }
      for (const SlotWait& wait : graph.waits(i)) {
        waiter_[at(next[at(wait.slot)]++)] = static_cast<std::int32_t>(i);
      }
      state_[i].count = graph.slots[i].count;
      times_.transfers += graph.slots[i].count * graph.slots[i].copies;
      left_ += graph.slots[i].count;
    }
  }

  FlowGraphTimes run() {
    for (std::size_t i = 0; i < graph_.slots.size(); ++i) {
      start_ready(static_cast<std::int32_t>(i), Time());
    }
    std::vector<NetworkEvent> events;
    std::int32_t reference = -1;  // the slot at whose deliveries states are compared
    while (left_ > 0) {
      events.clear();
      const Time now = network_.advance(Time::max(), events);
      if (events.empty()) {
        stuck();
      }
      bool reference_came = false;
      for (const NetworkEvent& event : events) {
        if (event.kind == NetworkEvent::Kind::kSent) {
          continue;
        }
        const auto slot = static_cast<std::int32_t>(event.tag);
        SlotState& state = state_[at(slot)];
        if (++state.delivered == state.count) {
          times_.delivered[at(slot)] = now;
          times_.sent[at(slot)] = now - graph_.slots[at(slot)].latency;
        }
        --left_;
        ++times_.simulated;
        for (std::int32_t w = waiter_begin_[at(slot)]; w < waiter_begin_[at(slot) + 1]; ++w) {
          const SlotState& waiting = state_[at(waiter_[at(w)])];
          if (waiting.blocker == slot && state.delivered >= waiting.needed) {
            start_ready(waiter_[at(w)], now);
          }
        }
        const bool done =
            reference < 0 || state_[at(reference)].delivered == state_[at(reference)].count;
        if (done && state.count - state.delivered >= kWorthwhile) {
          reference = slot;
          saved_.clear();
          steps_ = 0;
          next_save_ = 1;
        }
        reference_came = reference_came || slot == reference;
      }
      if (reference_came && fast_forward_) {
        look_for_repetition(now);
      }
    }
    return std::move(times_);
  }

 private:
  struct SlotState {
    std::int32_t started = 0, delivered = 0, count = 0;  // transfers
    // The next transfer waits until so many of slot `blocker` are delivered; -1 where none is left.
    std::int32_t blocker = -1, needed = 0;
  };

  /// Whether all that the slot's next transfer waits for has come; if not, notes what has not.
  /// `forwards`: it waits for any.
  bool ready(std::int32_t index, bool& forwards) {
    SlotState& state = state_[at(index)];
    forwards = false;
    for (const SlotWait& wait : graph_.waits(at(index))) {
      const SlotState& other = state_[at(wait.slot)];
      const std::int32_t needed = wait.needed(state.started, other.count);
      if (other.delivered < needed) {
        state.blocker = wait.slot;
        state.needed = needed;
        return false;
      }
      forwards = forwards || needed > 0;
    }
    state.blocker = -1;
    return true;
  }

  void start_ready(std::int32_t index, Time now) {
    const FlowGraph::Slot& slot = graph_.slots[at(index)];
    SlotState& state = state_[at(index)];
    state.blocker = -1;
    for (bool forwards = false; state.started < state.count && ready(index, forwards);
         ++state.started) {
      const Time latency = forwards ? slot.forward_latency : slot.start_latency;
      network_.start(ConnectionId(index), slot.bits, slot.latency,
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
      saved_ = state_;
      saved_time_ = now;
      network_.save_state(saved_network_);
    }
  }

  /// Whether what each slot has received relative to what it has sent is as it was.
  bool same_slots() const {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].delivered - state_[i].started != saved_[i].delivered - saved_[i].started) {
        return false;
      }
    }
    return true;
  }

  std::int32_t step_of(std::size_t slot) const {
    return state_[slot].started - saved_[slot].started;
  }

  /// How many periods may be jumped: every slot that moves keeps a transfer to do, and each wait is
  /// of the kind that repeats.
  std::int64_t periods() const {
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const std::int64_t step = step_of(i), started = state_[i].started;
      if (step > 0) {
        most = std::min(most, (state_[i].count - 1 - started) / step);
      }
      for (const SlotWait& wait : graph_.waits(i)) {
        const std::int64_t other = step_of(at(wait.slot));
        if (step > 0 && (other != step || saved_[i].started < wait.lag)) {
          return 0;
        }
        if (step == 0 && other > 0 && started < state_[i].count) {
          // Blocked, and to stay so.
          const std::int64_t needed = wait.needed(state_[i].started, state_[at(wait.slot)].count);
          const std::int64_t missing = needed - state_[at(wait.slot)].delivered;
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
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const auto moved = static_cast<std::int32_t>(step_of(i) * count);
      state_[i].started += moved;
      state_[i].delivered += moved;
      left_ -= moved;
    }
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].blocker >= 0) {
        bool forwards = false;
        ready(static_cast<std::int32_t>(i), forwards);
      }
    }
  }

  [[noreturn]] void stuck() const {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].started < state_[i].count) {
        throw Error(fmt::format("slot {} can never send transfer {} of {}", i, state_[i].started,
                                state_[i].count))
            .hint("look for slots that wait for each other in a circle");
      }
    }
    throw Error("a collective cannot finish");
  }

  const FlowGraph& graph_;
  bool fast_forward_;
  FluidNetwork network_;
  std::vector<SlotState> state_, saved_;
  FluidNetwork::Snapshot saved_network_;
  Time saved_time_;
  std::int64_t steps_ = 0, next_save_ = 1;
  std::vector<std::int32_t> waiter_begin_, waiter_;
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
  return Run(graph, fast_forward).run();
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
  return run.run();
}

}  // namespace lockstep
