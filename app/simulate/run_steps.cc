#include "app/simulate/run_steps.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/replay/shared_step.h"
#include "simulator/replay/step_sample.h"
#include "trace/job_meta.h"
#include "trace/trace.h"

namespace lockstep {

SimulateOptions once_more(SimulateOptions options) {
  options.fct_file.clear();
  options.pfc_file.clear();
  options.samples.clear();
  options.rows = nullptr;
  options.meta = nullptr;
  options.explain = false;
  options.detail = nullptr;
  options.memory = nullptr;
  options.with_ports = false;
  options.quiet = true;
  return options;
}

StepResult run_steps(const SimulateOptions& given, Timeline* timeline, const EngineRun& engine) {
  SimulateOptions options = given;
  const bool may_be_off = error_budget(given.error_budget) > 0;
  const bool priced = !given.no_straggler_prices && !may_be_off;
  SharedStep shared((priced ? runs_to_price(given.stragglers.size()) : 1) +
                    static_cast<std::size_t>(given.steps - 1));
  options.shared = &shared;
  const RunStep run = [&](std::span<const Straggler> stragglers, std::int64_t step) {
    SimulateOptions other = once_more(options);
    other.stragglers.assign(stragglers.begin(), stragglers.end());
    other.step = step;
    return engine(other, nullptr).total;
  };
  const auto whole = [&] { return engine(options, timeline); };
  StepResult result =
      priced ? price_stragglers(options.stragglers, options.threads, whole, run) : whole();
  if (may_be_off && !given.no_straggler_prices && !given.stragglers.empty()) {
    result.warnings.emplace_back(
        "stragglers are not priced: a price is the difference of two steps, each of which may be "
        "off by its --error-budget");
  }
  if (options.steps > 1) {
    std::vector<Trace> traces(static_cast<std::size_t>(options.steps));
    const RunStep traced = [&](std::span<const Straggler>, std::int64_t step) {
      if (step == options.step) {
        return result.first_end();
      }
      SimulateOptions other = once_more(options);
      JobMeta meta;
      other.step = step;
      other.rows = options.rows != nullptr ? &traces[static_cast<std::size_t>(step)] : nullptr;
      other.meta = &meta;
      return engine(other, nullptr).first_end();
    };
    result.sample =
        sample_steps(options.stragglers, options.steps, options.seed, options.threads, traced);
    traces.resize(result.sample->totals.size());
    for (std::size_t step = 1; options.rows != nullptr && step < traces.size(); ++step) {
      append_rows(*options.rows, traces[step], 0, traces[step].size());
    }
  }
  return result;
}

}  // namespace lockstep
