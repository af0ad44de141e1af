#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/whatif/causes.h"
#include "analysis/whatif/pauses.h"
#include "analysis/whatif/slow_workers.h"

namespace lockstep::whatif {

inline constexpr double kStraggling = 1.1;  ///< S of a straggling job or step
inline constexpr double kExplains = 0.5;    ///< of what is lost: who explains so much is named

/// What was found in a job, from which its causes and those of its steps are told.
struct Findings {
  const Scene& scene;
  const Decompositions& blocking;
  const std::vector<std::vector<double>>& per_step;  ///< S_w of each step
  const Pauses& pauses;
  const ComputeExcess& traced;
  const ComputeExcess& compute;  ///< without pauses that move over the workers
  const SlowWorkers& slow_workers;
  HeavyStages heavy;
  const std::optional<SlowTransfers>& transfers;
  StepTimes usual_transfers;  ///< T without the slow ones

  std::size_t width() const { return scene.table.width(); }
  /// Whether a worker that is slower than its peers is so in a step, at least half as much.
  bool is_slow_in(std::size_t worker, std::size_t step) const;
  /// Whether what is lost in a step is half gone in a timeline, `stays` seconds aside.
  bool explains(const StepTimes& without, std::size_t step, double stays = 0) const;
  /// Pauses of some workers, not those of all at once.
  bool pauses_explain(std::size_t step) const;
};

/// The patterns of the steps, by the list in docs/whatif.md, and what of it the causes use.
struct StepPatterns {
  std::vector<StepPattern> steps;
  std::vector<char> uneven;         ///< by step: sequences are
  std::vector<bool> communication;  ///< by step: wastes more than computation
};
/// Two simulations at most.
StepPatterns find_step_patterns(const Findings& found);

/// What shows that sequences are uneven in these steps (all if none are named); pauses hide that
/// passes go together.
SequenceLengthSign sequences_of(const OpTable& table, const std::vector<std::size_t>& steps,
                                const Pauses& pauses);
/// Whether an operation's label is of communication; and whether such a one wastes the most.
bool is_comm_label(const std::string& label);
bool communication_leads(const std::vector<std::string>& labels, const std::vector<double>& ratios);

}  // namespace lockstep::whatif
