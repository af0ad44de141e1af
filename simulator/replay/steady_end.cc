#include "simulator/replay/steady_end.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "simulator/replay/flow_graph_run.h"

namespace lockstep {
namespace {

constexpr std::int32_t kFirst = 32;

/// What the busiest constraint needs for one transfer of every slot, in picoseconds.
double pace(const FlowGraph& graph) {
  std::vector<double> bits(graph.capacity.size());
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    for (const MaxMin::Term& term : graph.terms(i)) {
      bits[term.constraint.index()] += term.coefficient * graph.slots[i].bits;
    }
  }
  double most = 0;
  for (std::size_t c = 0; c < bits.size(); ++c) {
    most = std::max(most, bits[c] / graph.capacity[c] * 1e12);
  }
  return most;
}

}  // namespace

std::optional<SteadyEnd> steady_end(const FlowGraph& graph, double budget) {
  if (graph.slots.empty()) {
    return std::nullopt;
  }
  const std::int32_t count = graph.slots.front().count;
  if (!std::ranges::all_of(graph.slots, [&](const auto& slot) { return slot.count == count; }) ||
      !std::ranges::all_of(graph.wait, [](const SlotWait& wait) { return wait.lag >= 0; })) {
    return std::nullopt;
  }
  const double per_transfer = pace(graph);
  FlowGraph part = graph;
  SteadyEnd result;
  double before = 0, moved = 0;  // rest of the run before, and how far it had moved
  for (std::int32_t m = kFirst; m <= count / 4; m *= 2) {
    for (FlowGraph::Slot& slot : part.slots) {
      slot.count = m;
    }
    const FlowGraphTimes times = run_flow_graph(part, /*fast_forward=*/true);
    result.simulated += times.simulated;
    const auto last = static_cast<double>(std::ranges::max(times.delivered).count_ps());
    const double rest = last - m * per_transfer;
    const double end = count * per_transfer + rest;
    const double moved_before = std::exchange(moved, std::abs(rest - before));
    const double error = std::max({moved, moved_before, per_transfer});
    if (m >= 4 * kFirst && error <= budget * end) {
      result.end = Time::ps(std::llround(end));
      result.error = Time::ps(std::llround(error));
      return result;
    }
    before = rest;
  }
  return std::nullopt;
}

}  // namespace lockstep
