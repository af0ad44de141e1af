#pragma once

#include <functional>

#include "app/plan/plan_options.h"
#include "app/plan/search_stop.h"
#include "planner/aceso/search/search.h"

namespace lockstep {

/// One plan priced for a study.
struct PricedFile {
  aceso::Plan plan;
  aceso::PlanPrice price;
};

/// Predicted against measured time and memory (--actual): a table for each measured plan, and with
/// -o accuracy.csv and pictures. `price` reads and prices a plan's file.
/// ERRORS: Error naming file and line of the measurements.
ExitCode run_accuracy_study(const AcesoOptions& options,
                            const std::function<PricedFile(const std::string& file)>& price);

/// One search of a scaling study.
struct ScalingPoint {
  std::int64_t layers = 0, ops = 0;
  aceso::SearchResult result;
  double cpu_s = 0;
};

/// What the search costs as the model grows (--scaling): a table, and with -o scaling.csv and
/// pictures. `search` runs one for so many layers; once `stop` is asked for, those that are done
/// are shown.
ExitCode run_scaling_study(const AcesoOptions& options, const SearchStop& stop,
                           const std::function<ScalingPoint(std::int64_t layers)>& search);

/// search.csv, and search and throughput as .svg and .png, beside the plans of a search.
void write_search_tables(const std::string& folder, const std::string& problem,
                         const aceso::SearchResult& result, double cpu_s);

}  // namespace lockstep
