#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "app/report_flags.h"
#include "base/error.h"

namespace lockstep {

/// The flags of `lockstep plan --model …`, as typed.
struct JobPlanOptions {
  std::vector<std::string> words;  ///< model, job and axes, as for `simulate --model`
  std::string topology;
  std::string objective = "time";
  std::string max_memory;              ///< empty: what the GPU has
  std::vector<std::string> forbidden;  ///< "vpp", "cp", …: axes held at 1
  std::string gpu_price, gpu_power;    ///< USD an hour; "700W" or "700W:150W"; or TYPE=VALUE,…
  std::vector<std::string> stragglers;
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  std::int64_t effort = 0;            ///< 0: until proven
  std::int64_t max_replay = 5000000;  ///< operations of a replay; 0: any
  std::string deadline;               ///< empty: none
  bool spray = true;
  int threads = 0;
  std::string replicas;  ///< "alike", "any"; empty: by the topology
  std::string price;     ///< a plan's file, to be priced in place of a search
  std::string resume;    ///< shared with the other problems
  std::string output;
  bool json = false;
  ReportFlags report;
};

/// Declares those that no other problem of `plan` has.
void define_job_plan_options(CLI::App& app, JobPlanOptions& options);

/// Searches, and writes the plan; or prices a given one. ERRORS: Error naming the flag.
ExitCode run_job_plan(const JobPlanOptions& options);

}  // namespace lockstep
