#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "analysis/whatif/dependency_graph.h"
#include "base/parallel.h"

namespace lockstep::whatif {

/// Step times of a simulation, one a (virtual) step, in seconds.
struct StepTimes {
  std::vector<double> optimizer;  ///< E: from the step's start to the end of the last optimizer
  std::vector<double> span;       ///< F: from the earliest start to the latest end of all
};

namespace detail {
struct Workspace;
}

/// Runs the dependency graph for many lanes at once. A step has several, which wait for each other
/// as the scopes of the groups say. Kahn's order, contracted groups; only max and + are used, so
/// that the order of the work never changes a number.
///
///     start(v) = max over predecessors u of end(u), or the step's start if there are none; + delay
///     local:  end(v) = start(v) + value(v)
///     group:  G = max over members of start, and over the lanes of the group's scope;
///             end(m) = G + value(m)
class Simulator {
 public:
  /// ERRORS: the graph has a cycle (some of its operations are named).
  /// `keep`, one a node: those that are played, all if empty. The members of a group are kept
  /// together; what waits for none that is kept starts with the step.
  Simulator(const OpTable& table, const DependencyGraph& graph, const std::string& file,
            const std::vector<bool>& keep = {});

  /// The nodes in the order of the work: none before what it waits for, those of a group together.
  const std::vector<std::uint32_t>& order() const { return order_; }

  /// values(node, first_lane, out): the durations of local and the transfer times of grouped
  ///   operations of out.size() lanes; or
  /// values(node, first_lane, from, out): out[i] = from[i] + those. The two do not overlap.
  /// delays(node, first_lane, starts): adds to the starts, in place.
  /// sink(node, first_lane, starts, ends): sees what came out.
  /// `step_start`: one a step. `scopes`: how many lanes a step has, and who waits for whom. Without
  /// `spans` StepTimes::span stays empty. Lanes come in blocks of whole steps, large runs on
  /// several threads: the functions may be called for different lanes at once. O(lanes * (nodes +
  /// edges)).
  template <class Values, class Delays, class Sink>
  StepTimes run(std::span<const double> step_start, const LaneScopes& scopes, Values&& values,
                Delays&& delays, Sink&& sink, bool spans = true) const;

  /// Without delays, and nobody looks.
  template <class Values>
  StepTimes run(std::span<const double> step_start, const LaneScopes& scopes, Values&& values,
                bool spans = true) const {
    return run(step_start, scopes, values, NoDelays{}, NoSink{}, spans);
  }

  struct NoDelays {
    void operator()(std::uint32_t, std::size_t, std::span<double>) const {}
  };
  struct NoSink {
    void operator()(std::uint32_t, std::size_t, std::span<const double>,
                    std::span<const double>) const {}
  };

 private:
  template <class Values, class Delays, class Sink>
  void play(std::span<const double> step_start, std::size_t first_step, std::size_t here,
            const LaneScopes& scopes, Values& values, Delays& delays, Sink& sink,
            detail::Workspace& space, StepTimes& times) const;

  struct Item {
    std::uint32_t first = 0, count = 0;  ///< of order_
    bool grouped = false;
    Scope scope = Scope::kLane;
  };

  const OpTable& table_;
  std::vector<std::uint32_t> order_;  ///< nodes, those of a group side by side
  std::vector<Item> items_;
  std::vector<std::uint32_t> predecessor_begin_;  ///< by node; one more at the end
  std::vector<std::uint32_t> predecessors_;
  /// Where a node's ends are kept until its last successor has started; a few slots do for all.
  std::vector<std::uint32_t> slot_;
  std::uint32_t slots_ = 0;
  std::uint32_t largest_item_ = 1;
};

namespace detail {

inline void max_of(double* to, const double* a, const double* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = a[i] < b[i] ? b[i] : a[i];
  }
}
inline void max_into(double* to, const double* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = to[i] < from[i] ? from[i] : to[i];
  }
}
inline void min_into(double* to, const double* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = from[i] < to[i] ? from[i] : to[i];
  }
}

/// Where a thread keeps the lanes of a block while it plays them.
struct Workspace {
  explicit Workspace(std::size_t slots, std::size_t largest, std::size_t width)
      : ends(slots * width),
        starts(largest * width),
        value(width),
        step_starts(width),
        latest(width),
        earliest(width),
        optimizer(width),
        group(width),
        start_at(largest) {}
  std::vector<double> ends, starts, value, step_starts, latest, earliest, optimizer, group;
  std::vector<const double*> start_at;  ///< of the members of the item that is played
};

}  // namespace detail

template <class Values, class Delays, class Sink>
StepTimes Simulator::run(std::span<const double> step_start, const LaneScopes& scopes,
                         Values&& values, Delays&& delays, Sink&& sink, bool spans) const {
  // A block's ends should stay in the cache.
  constexpr std::size_t kBlockBytes = 192 << 10;
  constexpr std::size_t kWorthAThread = 1 << 21;  // operations
  const std::size_t steps = step_start.size(), lanes_per_step = scopes.lanes;
  const std::size_t wanted = kBlockBytes / (sizeof(double) * (slots_ + 8));
  const std::size_t block_steps =
      std::min(steps, std::max<std::size_t>(1, wanted / lanes_per_step));
  const std::size_t blocks = (steps + block_steps - 1) / block_steps;
  const std::size_t threads =
      std::min<std::size_t>({blocks, std::max(1U, std::thread::hardware_concurrency()),
                             1 + steps * lanes_per_step * order_.size() / kWorthAThread});
  StepTimes times{std::vector<double>(steps), std::vector<double>(spans ? steps : 0)};
  std::atomic<std::size_t> next = 0;
  for_each_in_parallel(threads, static_cast<int>(threads), [&](std::size_t) {
    detail::Workspace space(slots_, largest_item_, block_steps * lanes_per_step);
    for (std::size_t block = next++; block < blocks; block = next++) {
      const std::size_t first = block * block_steps;
      play(step_start, first, std::min(block_steps, steps - first), scopes, values, delays, sink,
           space, times);
    }
  });
  return times;
}

template <class Values, class Delays, class Sink>
void Simulator::play(std::span<const double> step_start, std::size_t first_step, std::size_t here,
                     const LaneScopes& scopes, Values& values, Delays& delays, Sink& sink,
                     detail::Workspace& space, StepTimes& times) const {
  const bool spans = !times.span.empty();
  const std::size_t lanes_per_step = scopes.lanes;
  auto& [ends, starts, value, step_starts, latest, earliest, optimizer, group, start_at] = space;
  const std::size_t width = value.size();
  const std::size_t n = here * lanes_per_step;
  const std::size_t first_lane = first_step * lanes_per_step;
  for (std::size_t lane = 0; lane < n; ++lane) {
    step_starts[lane] = step_start[first_step + lane / lanes_per_step];
  }
  std::fill_n(latest.begin(), n, -std::numeric_limits<double>::infinity());
  std::fill_n(optimizer.begin(), n, -std::numeric_limits<double>::infinity());
  std::fill_n(earliest.begin(), n, std::numeric_limits<double>::infinity());
  for (const Item& item : items_) {
    for (std::uint32_t m = 0; m < item.count; ++m) {
      const std::uint32_t node = order_[item.first + m];
      const std::uint32_t begin = predecessor_begin_[node], end = predecessor_begin_[node + 1];
      const double* first =
          begin == end ? step_starts.data() : ends.data() + slot_[predecessors_[begin]] * width;
      // What waits for one operation alone starts where that ends.
      constexpr bool kInPlace = !std::is_same_v<std::remove_cvref_t<Delays>, NoDelays>;
      if (kInPlace || end - begin > 1) {
        double* start = starts.data() + m * width;
        if (end - begin > 1) {
          detail::max_of(start, first, ends.data() + slot_[predecessors_[begin + 1]] * width, n);
        } else {
          std::copy_n(first, n, start);
        }
        for (std::uint32_t p = begin + 2; p < end; ++p) {
          detail::max_into(start, ends.data() + slot_[predecessors_[p]] * width, n);
        }
        delays(node, first_lane, std::span<double>(start, n));
        first = start;
      }
      start_at[m] = first;
      if (spans) {
        detail::min_into(earliest.data(), first, n);
      }
    }
    if (item.grouped) {
      std::copy_n(start_at[0], n, group.data());
      for (std::uint32_t m = 1; m < item.count; ++m) {
        detail::max_into(group.data(), start_at[m], n);
      }
      scopes.take_largest(item.scope, std::span<double>(group.data(), n));
    }
    for (std::uint32_t m = 0; m < item.count; ++m) {
      const std::uint32_t node = order_[item.first + m];
      const double* start = start_at[m];
      const double* from = item.grouped ? group.data() : start;
      double* end = ends.data() + slot_[node] * width;
      if constexpr (requires { values(node, first_lane, from, std::span<double>()); }) {
        values(node, first_lane, from, std::span<double>(end, n));
      } else {
        values(node, first_lane, std::span<double>(value.data(), n));
        for (std::size_t lane = 0; lane < n; ++lane) {
          end[lane] = from[lane] + value[lane];
        }
      }
      if (spans) {
        detail::max_into(latest.data(), end, n);
      }
      if (table_.nodes[node].type == TraceOp::kOptimizer) {
        detail::max_into(optimizer.data(), end, n);
      }
      sink(node, first_lane, std::span<const double>(start, n), std::span<const double>(end, n));
    }
  }
  const auto step_lanes = static_cast<std::ptrdiff_t>(lanes_per_step);
  for (std::size_t s = 0; s < here; ++s) {
    const auto lanes = [&](const std::vector<double>& v) {
      return v.begin() + static_cast<std::ptrdiff_t>(s) * step_lanes;
    };
    times.optimizer[first_step + s] =
        *std::max_element(lanes(optimizer), lanes(optimizer) + step_lanes) -
        step_start[first_step + s];
    if (spans) {
      times.span[first_step + s] = *std::max_element(lanes(latest), lanes(latest) + step_lanes) -
                                   *std::min_element(lanes(earliest), lanes(earliest) + step_lanes);
    }
  }
}

}  // namespace lockstep::whatif
