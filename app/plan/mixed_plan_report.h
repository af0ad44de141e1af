#pragma once

#include <string>
#include <vector>

#include "app/plan/job_plan_input.h"
#include "base/json.h"
#include "planner/job/mixed_search.h"

namespace lockstep {

/// What a search for plans with pipelines of different shape found, and what explains it.
struct MixedPlanReport {
  MixedSearchResult result;
  std::vector<MixedTipping> tipping;
  std::vector<double> expected_s;  ///< of the first plans, with stragglers; empty: none
  std::vector<std::string> notes;  ///< what the prices are, and are not
  bool sprayed = false;
};

/// For people.
std::string mixed_plan_text(const JobPlanInput& input, const MixedProblem& problem,
                            const MixedPlanReport& report);

/// For machines (docs/formats/plan-json.md).
Json mixed_plan_json(const JobPlanInput& input, const MixedProblem& problem,
                     const MixedPlanReport& report);

/// Writes the best plan as what starts it, into a folder that is made if absent:
///
///   workload.json   the step, rank by rank: the job file
///   job.sh          the `lockstep simulate` line that runs it
///   plan.json       `json`
///   megatron.sh     Megatron-LM's line where all pipelines are alike, with the order of servers;
///                   else it says that there is none, and ends
///   deepspeed.json  what DeepSpeed's configuration can say, and in _comment what it cannot
///
/// ERRORS: Error naming the folder or file.
void write_mixed_plan(const JobPlanInput& input, const MixedProblem& problem,
                      const MixedPlanReport& report, const std::string& json);

}  // namespace lockstep
