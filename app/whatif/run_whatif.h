#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/report_flags.h"
#include "base/error.h"

namespace lockstep {

/// The flags of `lockstep whatif`.
struct WhatIfOptions {
  std::vector<std::string> traces;  ///< of one job
  std::string meta, output;
  std::vector<std::string> steps;
  double decompose_threshold = 1.03;
  bool drop_incomplete_steps = false;
  std::string workers = "exact";   ///< S_w of the causes: exact, or min as the artifact has it
  std::vector<std::string> edits;  ///< "forward-compute[stage=3] *= 0.8"
  bool json = false;
  ReportFlags report;
  std::vector<std::string> timelines = {"json"};  ///< their forms: json, perfetto, none
  std::string follow;  ///< a folder in which traces land; in place of `traces`
  bool once = false;
  double alert_slowdown = 1.1;
  std::int64_t alert_steps = 3;
  std::int64_t poll_ms = 1000, settle_ms = 2000;
};

/// Analyses the trace and writes the documents into the output folder.
ExitCode run_whatif(const WhatIfOptions& options);

}  // namespace lockstep
