#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/aceso/cost.h"

namespace lockstep::aceso {

/// Memory in the search: whole half-thousandths of a MB, in which all profiles and their 1.5-fold
/// are exact, so that sums do not depend on their order. What is not is rounded up, limits down.
using Units = std::int64_t;
inline constexpr double kUnitsPerMb = 2000;
Units to_units(double mb);
Units limit_units(double mb);

/// What the search assumes of a problem; the same for every stage.
struct Problem {
  const Database* database = nullptr;
  const Model* model = nullptr;
  Cluster cluster;
  Flavour flavour = Flavour::kStrict;
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> microbatches;  ///< B and B / dp are of these
  int max_tp = 8;
  int max_stages = 16;
  double spare_mb = 0;  ///< kept free of each GPU's memory

  std::int64_t ops() const { return static_cast<std::int64_t>(database->ops.size()); }
  Units limit() const { return limit_units(cluster.memory_limit_mb - spare_mb); }
  /// Copies of the weights that are kept, the reserve aside.
  std::int64_t weight_copies() const {
    return static_cast<std::int64_t>(2 + model->main_params() + model->optimizer());
  }
};

/// One way to run an op: the figures of its row of the profile.
struct OpChoice {
  bool allowed = false;
  double time_us = 0;     ///< forward and backward, and the share of what happens once a step
  double forward_us = 0;  ///< again, when recomputed
  Units activations = 0;  ///< with the factor of its name
  Units weights = 0, input = 0;
  Units forward_reserved = 0, backward_reserved = 0;
  std::array<double, 2> receive_us{};  ///< as first op of a stage; [1] from another server
};

/// A step between neighbouring ops: from one choice to another, with what the change costs.
struct Step {
  int from = 0, to = 0;
  double us = 0;
};

/// All that a stage on `gpus` GPUs may do at one microbatch: the choices are (tp, dp, algorithm),
/// one op's algorithm 0 before its algorithm 1.
struct Space {
  int gpus = 1;
  std::int64_t microbatch = 1, microbatches = 1;
  std::vector<OpPlace> choices;
  std::vector<std::vector<OpChoice>> rows;  ///< [row][choice]
  std::vector<std::vector<Step>> steps;     ///< [pair]
  std::vector<int> pair;                    ///< pair[i]: of ops i and i + 1
  std::vector<int> op_row;
  std::vector<char> counts_when_saved;       ///< [i]: a flag on i and i + 1 saves i's activations
  std::vector<char> closes;                  ///< [i]: such a run ends after i
  std::vector<char> ordinary, recomputable;  ///< [i]
  /// send_us[first choice's tp index][row][choice][other server]; all as last op of a stage.
  std::vector<int> tensor_index;  ///< of a choice: which of the distinct tp
  std::vector<std::vector<std::vector<std::array<double, 2>>>> send_us;
  /// Fixed flavour: the model's first op receives nothing, its last one sends nothing, and both sum
  /// the gradients of a tied embedding once a step, by choice.
  bool ends_are_free = false;
  std::vector<double> tie_first_us, tie_last_us;

  /// The least that any stage but the model's first receives, and any but its last sends.
  std::array<double, 2> least_receive_us{}, least_send_us{};
  Units least_input = 0;

  bool empty() const { return choices.empty(); }
  const OpChoice& at(std::int64_t op, std::size_t choice) const {
    return rows[static_cast<std::size_t>(op_row[static_cast<std::size_t>(op)])][choice];
  }
  /// Of the first op of a stage; `whole`: the stage is all of the model.
  double receive(std::int64_t op, std::size_t choice, bool crosses, bool whole) const {
    if (ends_are_free && op == 0) {
      return whole ? 0 : tie_first_us[choice];
    }
    return at(op, choice).receive_us[crosses ? 1 : 0];
  }
  /// Of the last op of a stage whose first op has the tensor-parallel degree of that index.
  double send(int tensor, std::int64_t op, std::size_t choice, bool crosses, bool whole) const {
    if (ends_are_free && op + 1 == static_cast<std::int64_t>(op_row.size())) {
      return whole ? 0 : tie_last_us[choice];
    }
    return send_us[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(
        op_row[static_cast<std::size_t>(op)])][choice][crosses ? 1 : 0];
  }
};

/// The space of stages on `gpus` GPUs with pipeline microbatch `microbatch`; empty if the profile
/// has nothing for it. O(rows * choices^2).
Space make_space(const Problem& problem, std::int64_t microbatch, int gpus);

}  // namespace lockstep::aceso
