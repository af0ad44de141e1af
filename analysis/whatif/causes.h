#pragma once

#include <string>
#include <vector>

#include "analysis/whatif/remedies.h"
#include "analysis/whatif/sequence_length.h"
#include "analysis/whatif/whatif.h"

namespace lockstep::whatif {

/// What a step looks like, or a job.
enum class Pattern {
  kNone,            ///< no slower than 1.1 times the ideal
  kWorker,          ///< one worker explains half of it
  kStage,           ///< one pipeline stage does
  kSequenceLength,  ///< microbatches of uneven length
  kGc,              ///< single passes that took far longer, on workers that change
  kCommunication,   ///< transfers cost more than computation
  kOneOff,          ///< few steps, far slower than the others
  kMixed,           ///< none of these
};
std::string_view to_text(Pattern pattern);

struct StepPattern {
  std::int64_t step = 0;
  double slowdown = 1;  ///< T / I of the step
  Pattern pattern = Pattern::kNone;
  std::size_t worker = 0;  ///< the slowest, as in OpTable::ranks
  std::int32_t stage = 0;  ///< the slowest
};

struct Cause {
  Pattern pattern = Pattern::kMixed;
  /// Share of the slow steps that show this pattern (with this worker or stage), 0 to 1.
  double confidence = 0;
  std::string evidence;  ///< in words, with figures
};

/// Why a job is slower than it could be, and what would help.
struct Causes {
  double slowdown = 1;               ///< S
  double waste = 0;                  ///< 1 - 1 / S (eq. 3): the share of the GPU hours that is lost
  bool straggling = false;           ///< S >= 1.1
  std::vector<Cause> causes;         ///< the main one first; empty if not straggling
  Contribution workers, stage;       ///< M_W (of the workers in `slowest`) and M_S
  std::vector<double> by_worker;     ///< S_w, as OpTable::ranks
  std::vector<std::size_t> slowest;  ///< workers by S_w, largest first, at most 10
  SequenceLengthSign sequence_length;
  std::vector<StepPattern> steps;
  std::vector<Remedy> remedies;  ///< what saves most first
};

/// Takes the decisions of the list in docs/whatif.md: a worker if M_W >= 0.5; else a stage if M_S
/// >= 0.5 and sequence lengths if r >= 0.9 and the forward times vary by 5 % (both may be); else
/// communication if a transfer type wastes more than computation; else garbage collection if
/// outlying passes are among the slowest steps; else mixed.
/// Source of the thresholds: Wu et al., OSDI '25, section 5.
/// `by_worker`: S_w of each worker, exact or approximate; `per_step`: exact; `stage`: M_S.
/// Some ten simulations.
Causes find_causes(const Scene& scene, const Decompositions& blocking,
                   std::vector<double> by_worker, const std::vector<std::vector<double>>& per_step,
                   const Contribution& stage);

/// As the document causes-NAME.json.
std::string causes_json(const Causes& causes, const OpTable& table, const JobMeta& meta);

}  // namespace lockstep::whatif
