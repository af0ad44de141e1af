#include "planner/aceso/search/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::aceso {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// Cheapest costs by choice and recompute flag.
using Front = std::vector<std::array<Lanes, 2>>;

Front empty_front(std::size_t choices) {
  Front front(choices);
  for (auto& flags : front) {
    flags[0].fill(kFar);
    flags[1].fill(kFar);
  }
  return front;
}

/// to = min(to, from + us + price * memory).
inline void relax(Lanes& to, const Lanes& from, double us, const Lanes& prices, double memory) {
  for (std::size_t l = 0; l < kLanes; ++l) {
    to[l] = std::min(to[l], from[l] + (us + prices[l] * memory));
  }
}

/// Memory of an op itself, in units times microbatches.
double memory_of(const OpChoice& choice, const StageKind& kind) {
  return static_cast<double>(kind.in_flight * choice.activations +
                             kind.weight_copies * choice.weights);
}

/// Least reserve of a stage's ops, whatever their choices; grows with the stage.
class Reserve {
 public:
  void add(const Space& space, std::int64_t op) {
    Units forward = std::numeric_limits<Units>::max(), backward = forward;
    for (std::size_t c = 0; c < space.choices.size(); ++c) {
      const OpChoice& choice = space.at(op, c);
      if (choice.allowed) {
        forward = std::min(forward, choice.forward_reserved);
        backward = std::min(backward, choice.backward_reserved);
      }
    }
    forward_ = std::max(forward_, forward);
    backward_ = std::max(backward_, backward);
  }
  double units() const { return static_cast<double>(forward_ + backward_); }

 private:
  Units forward_ = 0, backward_ = 0;
};

double bound_of(const Lanes& cheapest, const Lanes& prices, double room) {
  double bound = -kFar;
  for (std::size_t l = 0; l < kLanes; ++l) {
    // Less what sums of that size are rounded by.
    bound = std::max(bound, cheapest[l] - prices[l] * room * (1 + 1e-12));
  }
  return bound;
}

double cheapest_send(const Space& space, std::int64_t op, std::size_t choice, bool crosses,
                     bool whole) {
  double us = kFar;
  for (int t = 0; t <= space.tensor_index.back(); ++t) {
    us = std::min(us, space.send(t, op, choice, crosses, whole));
  }
  return us;
}

}  // namespace

Lanes price_ladder(const Space& space) {
  double low = kFar, high = 0;
  for (std::size_t row = 0; row < space.rows.size(); ++row) {
    for (const OpChoice& choice : space.rows[row]) {
      if (choice.allowed && choice.activations > 0 && choice.forward_us > 0) {
        const double ratio = choice.forward_us / static_cast<double>(choice.activations);
        low = std::min(low, ratio);
        high = std::max(high, ratio);
      }
    }
  }
  Lanes prices{};
  if (high > 0) {
    low = std::max(low, high / 1000);
    constexpr std::size_t kRecomputing = kLanes - 3;  // and 0
    const double step = std::pow(2 * high / low, 1.0 / static_cast<double>(kRecomputing - 1));
    for (std::size_t l = 1; l <= kRecomputing; ++l) {
      prices[l] = low * std::pow(step, static_cast<double>(l) - 1);
    }
    // Where no recomputation is enough, whatever time it takes.
    prices[kLanes - 2] = 40 * high;
    prices[kLanes - 1] = 2000 * high;
  }
  return prices;
}

void sweep_forward(const Space& space, const StageKind& kind, const Lanes& ladder,
                   std::int64_t first, double stop_us,
                   const std::function<void(std::int64_t, double)>& visit) {
  const std::size_t choices = space.choices.size();
  const auto ops = static_cast<std::int64_t>(space.op_row.size());
  const auto flights = static_cast<double>(kind.in_flight);
  Lanes prices = ladder;
  for (double& price : prices) {
    price /= flights;
  }
  Front front = empty_front(choices), next = front;
  const Lanes zero{};
  for (std::size_t c = 0; c < choices; ++c) {
    const OpChoice& choice = space.at(first, c);
    if (!choice.allowed) {
      continue;
    }
    const double us =
        choice.time_us + (first == 0 ? std::min(space.receive(first, c, false, true),
                                                space.receive(first, c, false, false))
                                     : space.receive(first, c, kind.receives_across, false));
    const double memory = memory_of(choice, kind) + flights * static_cast<double>(choice.input);
    relax(front[c][0], zero, us, prices, memory);
    if (space.recomputable[static_cast<std::size_t>(first)] != 0) {
      relax(front[c][1], zero, us + choice.forward_us, prices, memory);
    }
  }
  Reserve reserve;
  for (std::int64_t op = first;; ++op) {
    if (kind.reserve_last) {
      reserve.add(space, op);
    }
    Lanes cheapest, running;
    cheapest.fill(kFar);
    running.fill(kFar);
    const bool whole = first == 0 && op + 1 == ops;
    for (std::size_t c = 0; c < choices; ++c) {
      if (!space.at(op, c).allowed) {
        continue;
      }
      const double send = cheapest_send(space, op, c, kind.sends_across, whole);
      relax(cheapest, front[c][0], send, prices, 0);
      relax(cheapest, front[c][1], send, prices, 0);
      relax(running, front[c][0], 0, prices, 0);
      // A longer stage could save this op's activations, too.
      relax(running, front[c][1], 0, prices,
            -flights * static_cast<double>(space.at(op, c).activations));
    }
    const double room = static_cast<double>(kind.limit) - reserve.units();
    if (bound_of(running, prices, room) > stop_us) {
      return;
    }
    visit(op + 1, bound_of(cheapest, prices, room));
    if (op + 1 == ops) {
      return;
    }
    if (!kind.reserve_last) {
      reserve.add(space, op);
    }
    next = empty_front(choices);
    const auto at = static_cast<std::size_t>(op);
    for (const Step& step : space.steps[static_cast<std::size_t>(space.pair[at])]) {
      const auto from = static_cast<std::size_t>(step.from), to = static_cast<std::size_t>(step.to);
      const OpChoice& choice = space.at(op + 1, to);
      const double memory = memory_of(choice, kind);
      const double us = step.us + choice.time_us;
      relax(next[to][0], front[from][0], us, prices, memory);
      relax(next[to][0], front[from][1], us, prices, memory);
      if (space.recomputable[at + 1] != 0) {
        const double again = us + choice.forward_us;
        const double saved = space.counts_when_saved[at] != 0
                                 ? flights * static_cast<double>(space.at(op, from).activations)
                                 : 0;
        relax(next[to][1], front[from][0], again, prices, memory);
        relax(next[to][1], front[from][1], again, prices, memory - saved);
      }
    }
    std::swap(front, next);
  }
}

std::int64_t furthest_start(const Space& space, const StageKind& kind, const Lanes& ladder,
                            std::int64_t end, double time_us) {
  const std::size_t choices = space.choices.size();
  const auto flights = static_cast<double>(kind.in_flight);
  Lanes prices = ladder;
  for (double& price : prices) {
    price /= flights;
  }
  Front front = empty_front(choices), next = front;
  const Lanes zero{};
  const std::int64_t last = end - 1;
  for (std::size_t c = 0; c < choices; ++c) {
    const OpChoice& choice = space.at(last, c);
    if (!choice.allowed) {
      continue;
    }
    const double memory = memory_of(choice, kind);
    relax(front[c][0], zero, choice.time_us, prices, memory);
    if (space.recomputable[static_cast<std::size_t>(last)] != 0) {
      // A longer stage could save this op's activations, too.
      relax(front[c][1], zero, choice.time_us + choice.forward_us, prices,
            memory - flights * static_cast<double>(choice.activations));
    }
  }
  const bool ends_model = end == static_cast<std::int64_t>(space.op_row.size());
  const double send = ends_model ? 0 : space.least_send_us[kind.sends_across ? 1 : 0];
  const double receive = space.least_receive_us[kind.receives_across ? 1 : 0];
  const double input = flights * static_cast<double>(space.least_input);
  std::int64_t found = -1;  // the answer for stages that receive something
  Reserve reserve;
  for (std::int64_t op = last;; --op) {
    Lanes cheapest;
    cheapest.fill(kFar);
    for (std::size_t c = 0; c < choices; ++c) {
      relax(cheapest, front[c][0], 0, prices, 0);
      relax(cheapest, front[c][1], 0, prices, 0);
    }
    const double room = static_cast<double>(kind.limit) - reserve.units();
    if (bound_of(cheapest, prices, room) + send > time_us) {
      return found >= 0 ? found : op + 1;
    }
    if (op == 0) {
      return 0;
    }
    if (found < 0 && bound_of(cheapest, prices, room - input) + send + receive > time_us) {
      found = op + 1;
    }
    reserve.add(space, op - 1);  // the last op's does not count
    next = empty_front(choices);
    const auto at = static_cast<std::size_t>(op - 1);
    for (const Step& step : space.steps[static_cast<std::size_t>(space.pair[at])]) {
      const auto from = static_cast<std::size_t>(step.from), to = static_cast<std::size_t>(step.to);
      const OpChoice& choice = space.at(op - 1, from);
      const double memory = memory_of(choice, kind);
      const double us = step.us + choice.time_us;
      relax(next[from][0], front[to][0], us, prices, memory);
      relax(next[from][0], front[to][1], us, prices, memory);
      if (space.recomputable[at] != 0) {
        const double again = us + choice.forward_us;
        const double saved = space.counts_when_saved[at] != 0
                                 ? flights * static_cast<double>(choice.activations)
                                 : 0;
        relax(next[from][1], front[to][0], again, prices, memory);
        relax(next[from][1], front[to][1], again, prices, memory - saved);
      }
    }
    std::swap(front, next);
  }
}

}  // namespace lockstep::aceso
