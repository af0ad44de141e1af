#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

/// The values a simulation may give a node: durations of local operations, transfer times of
/// grouped ones. Lanes are those of the table.
class Values {
 public:
  explicit Values(const Scene& scene)
      : table_(scene.table),
        graph_(scene.graph),
        traced_(scene.traced),
        model_(scene.model),
        lanes_(scene.table.lanes()),
        steps_(scene.table.steps.size()),
        width_(scene.table.width()) {}

  bool grouped(std::uint32_t node) const { return graph_.group_of[node] >= 0; }

  /// As traced, 32 bits.
  const float* traced(std::uint32_t node) const {
    return (grouped(node) ? traced_.transfer_s.data() : table_.duration_s.data()) + node * lanes_;
  }
  void traced(std::uint32_t node, std::size_t first, std::span<double> out) const {
    std::copy_n(traced(node) + first, out.size(), out.begin());
  }

  void add_traced(std::uint32_t node, std::size_t first, const double* from,
                  std::span<double> out) const {
    const float* own = traced(node) + first;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = from[i] + static_cast<double>(own[i]);
    }
  }

  /// As in T: what the simulation made of local durations, end - start.
  void nodelay(std::uint32_t node, std::size_t first, std::span<double> out) const {
    if (grouped(node)) {
      traced(node, first, out);
    } else {
      std::copy_n(model_.nodelay_durations(node, lanes_) + first, out.size(), out.begin());
    }
  }

  /// As in I, for one step: what the simulation made of local durations, end - start.
  double ideal(std::uint32_t node, std::size_t step) const {
    const std::size_t at = node * steps_ + step;
    return grouped(node) ? model_.ideal_s[node] : model_.ideal_end_s[at] - model_.ideal_start_s[at];
  }
  void ideal(std::uint32_t node, std::size_t first, std::span<double> out) const {
    each_step(first, out.size(), [&](std::size_t begin, std::size_t end, std::size_t step) {
      std::fill(out.data() + begin, out.data() + end, ideal(node, step));
    });
  }
  void add_ideal(std::uint32_t node, std::size_t first, const double* from,
                 std::span<double> out) const {
    each_step(first, out.size(), [&](std::size_t begin, std::size_t end, std::size_t step) {
      const double value = ideal(node, step);
      for (std::size_t i = begin; i < end; ++i) {
        out[i] = from[i] + value;
      }
    });
  }

 private:
  /// Calls f(begin, end, step) for the lanes of each step among `count` lanes from `first` on.
  template <class F>
  void each_step(std::size_t first, std::size_t count, F&& f) const {
    std::size_t lane = first;
    for (std::size_t i = 0; i < count;) {
      const std::size_t here = std::min(count - i, width_ - lane % width_);
      f(i, i + here, lane / width_);
      i += here;
      lane += here;
    }
  }

  const OpTable& table_;
  const DependencyGraph& graph_;
  const Traced& traced_;
  const Model& model_;
  std::size_t lanes_, steps_, width_;
};

}  // namespace lockstep::whatif
