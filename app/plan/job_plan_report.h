#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "planner/job/job_search.h"
#include "planner/job/job_sensitivity.h"

namespace lockstep {

/// What a search for plans of a model found, and what explains it.
struct JobPlanReport {
  std::string model, topology, objective;
  JobSearchResult result;
  std::vector<double> expected_s;  ///< of the first plans, with stragglers; empty: none
  std::vector<PlanVariant> neighbours;
  std::vector<TippingPoint> tipping;
  std::vector<std::string> words;  ///< of `lockstep simulate` for the best plan
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  ///< what the prices are, and are not
  bool sprayed = false;            ///< routes of all replays
};

/// For people.
std::string job_plan_text(const JobPlanReport& report, const JobProblem& problem);

/// For machines (docs/formats/plan-json.md).
Json job_plan_json(const JobPlanReport& report, const JobProblem& problem);

/// One plan that was given and priced, not searched for: lockstep-plan-price/1. `report.result` has
/// it alone.
std::string job_price_text(const JobPlanReport& report, const JobProblem& problem);
Json job_price_json(const JobPlanReport& report, const JobProblem& problem);

/// How far a plan that is not proven may be from the best; of one without a price nothing is known.
std::string bound_text(double bound, std::string_view unit, double best, bool priced);

/// What a step consists of on the reporting rank that is not as long there as here: a line for each
/// part, with what `there` loses or wins by it.
std::string step_differences(const PricedStep& here, const PricedStep& there);

/// The best priced plan of another cut (GPUs, tp, cp, pp, ep) than the first; nullptr: none.
const JobPlan* runner_up(const JobSearchResult& result);

}  // namespace lockstep
