#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

/// Workers that are replaced by such as the others of their stage: each of their operations takes
/// the median of what it takes the others in that step, or the ideal where there are none. Their
/// groups' transfers then take what a group would wait for whose last member computes so long, and
/// gradients behind the last pass what they would behind such a pass, of which computation hides
/// less, and clipping, which computes before it meets, what the longest then would; the passes of
/// the others are no longer slowed down by collectives that wait for them. That is known where the
/// trace says what each member would wait for (OpTable::alone_s).
class Replacement {
 public:
  /// `workers`: stage * width + lane of a step. All must outlive it.
  Replacement(const Scene& scene, std::span<const std::size_t> workers);

  /// For simulate_edited().
  void edit(std::uint32_t node, std::size_t first_lane, std::span<double> values) const;

 private:
  bool is_replaced(std::size_t stage, std::size_t lane) const;
  bool is_held_up(std::size_t lane) const;
  std::span<const float> alone(std::size_t node) const {
    return std::span<const float>(table_.alone_s).subspan(node * table_.lanes(), table_.lanes());
  }
  std::optional<double> as_the_others(std::size_t node, std::size_t lane,
                                      std::span<const float> column) const;
  void find_lateness();
  double own_then(std::size_t pass, std::size_t at) const;
  double computes_now(std::size_t pass, std::size_t at) const;
  double computes_then(std::size_t pass, std::size_t at) const;
  double takes_then(std::size_t pass, std::size_t at) const;
  std::optional<double> waits_alone(std::size_t node, std::size_t lane) const;
  void change_reductions(std::uint32_t node, std::size_t first, std::span<double> values) const;
  void change_clipping(std::uint32_t node, std::size_t first, std::span<double> values) const;
  void change_transfers(std::uint32_t node, std::size_t first, std::span<double> values) const;
  struct LastWait {
    double waits_now = 0, waits_then = 0;
  };
  std::optional<LastWait> last_of(std::size_t node, std::size_t pass,
                                  const std::vector<std::uint32_t>& lanes, std::size_t first) const;

  const Scene& scene_;
  const OpTable& table_;
  std::size_t width_;
  std::span<const std::size_t> workers_;
  std::vector<std::size_t> held_up_;  ///< they, and those who wait for them within passes
  /// [step * workers + worker]: the part that is left of what collectives that wait for a late one
  /// take from its computing, as of the time by which that is late. Empty where the trace does not
  /// say what they take.
  std::vector<double> slowed_then_;
};

}  // namespace lockstep::whatif
