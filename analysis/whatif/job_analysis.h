#pragma once

#include <string>
#include <vector>

#include "analysis/whatif/causes.h"
#include "analysis/whatif/load_job.h"
#include "analysis/whatif/whatif.h"
#include "trace/job_meta.h"

namespace lockstep::whatif {

struct AnalysisOptions {
  double decompose_threshold = 1.03;
  bool picked_steps = false;         ///< the trace is a part of the file
  bool approximate_workers = false;  ///< S_w of the causes by the artifact's approximation
};

/// The two shares, as the artifact's tools take them: with steps that start at 0.
struct Shares {
  Contribution stage, workers;
};

/// A trace and all that is derived from it.
///
/// Its parts refer to one another, so that it stays where it was made.
class JobAnalysis {
 public:
  /// Analyses the trace. Warnings are added as they come; `file` is for messages.
  /// ERRORS: those of make_dependency_graph and Simulator; a step that takes no time.
  JobAnalysis(LoadedJob job, const JobMeta& meta, const std::string& file,
              const AnalysisOptions& options, Warnings* warnings);
  JobAnalysis(const JobAnalysis&) = delete;
  JobAnalysis& operator=(const JobAnalysis&) = delete;

  const Trace trace;  ///< sorted; what the table's rows refer to, if they are kept
  const OpTable table;
  const DependencyGraph graph;
  const Simulator simulator;
  const Traced traced;
  const Model model;
  const Scene scene;
  const Decompositions blocking;
  const Result result;
  const Decomposition workers;  ///< S_w, exact
  /// S_w as the artifact has it. It has no tensor- and context-parallel ranks; with those the
  /// exact.
  const std::vector<double> approximate;
  const Shares shares;
  const Causes causes;
};

}  // namespace lockstep::whatif
