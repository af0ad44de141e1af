#pragma once

#include <string>
#include <vector>

#include "analysis/whatif/peers.h"
#include "analysis/whatif/remedies.h"
#include "analysis/whatif/sequence_length.h"
#include "analysis/whatif/whatif.h"

namespace lockstep::whatif {

/// What a step looks like, or a job.
enum class Pattern {
  kNone,            ///< no slower than 1.1 times the ideal
  kWorker,          ///< one worker explains half of it, or is slower than its peers
  kStage,           ///< one pipeline stage does
  kSequenceLength,  ///< microbatches of uneven length
  kGc,              ///< single passes that took far longer, on workers that change, explain half
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
  // The same for programs, where it is one's fault.
  std::vector<std::int32_t> ranks;  ///< the worker; those whose transfers are slow
  std::string what;                 ///< operations that are slow; empty if not told
  double factor = 0;                ///< so many times slower than the peers'
};

/// Why a job is slower than it could be, and what would help.
struct Causes {
  double slowdown = 1;            ///< S
  double waste = 0;               ///< 1 - 1 / S (eq. 3): the share of the GPU hours that is lost
  bool straggling = false;        ///< S >= 1.1
  std::vector<Cause> causes;      ///< the main one first; empty if not straggling
  Contribution workers, stage;    ///< M_W (of the workers in `slowest`) and M_S
  std::vector<double> by_worker;  ///< S_w, as OpTable::ranks
  /// Workers, at most 10: first one that is slower than its peers, then by S_w, largest first.
  std::vector<std::size_t> slowest;
  SequenceLengthSign sequence_length;
  std::vector<StepPattern> steps;
  std::vector<Remedy> remedies;  ///< what saves most first
};

/// Takes the decisions of the list in docs/whatif.md. With several workers a stage, a worker if it
/// computes longer than its peers and replacing it saves 1 %; with one a stage, if M_W >= 0.5.
/// Communication if transfers are slower than their peers' and 1 % is lost by it. Garbage
/// collection if outlying passes move over the workers and pausing together saves 1 %. Of a
/// straggling job further sequence lengths if r >= 0.9 and the forward times vary by 5 %; a stage
/// if M_S >= 0.5 or one is heavier than the others; and if there is nothing yet: communication if a
/// transfer type wastes more than computation; else mixed. Source of the thresholds: Wu et al.,
/// OSDI '25, section 5. `by_worker`: S_w of each worker, exact or approximate; `per_step`: exact;
/// `stage`: M_S. Some seventeen simulations.
Causes find_causes(const Scene& scene, const Decompositions& blocking,
                   std::vector<double> by_worker, const std::vector<std::vector<double>>& per_step,
                   const Contribution& stage);

/// As the document causes-NAME.json.
std::string causes_json(const Causes& causes, const OpTable& table, const JobMeta& meta);

}  // namespace lockstep::whatif
