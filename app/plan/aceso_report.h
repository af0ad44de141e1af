#pragma once

#include <string>

#include "base/json.h"
#include "planner/aceso/cost.h"

namespace lockstep {

/// Of the samples that are run.
double samples_per_s(const aceso::Plan& plan, const aceso::PlanPrice& price);

/// A plan and its price, a line a stage.
std::string aceso_plan_table(const aceso::Plan& plan, const aceso::PlanPrice& price,
                             const aceso::Cluster& cluster);

/// The same for machines (docs/formats/plan-json.md).
Json aceso_plan_json(const aceso::Plan& plan, const aceso::PlanPrice& price,
                     const aceso::Cluster& cluster);

}  // namespace lockstep
