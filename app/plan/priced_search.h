#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/plan/job_plan_input.h"
#include "app/plan/price_journal.h"
#include "app/plan/search_stop.h"
#include "app/report_flags.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/output_capture.h"
#include "base/progress.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_sample.h"

namespace lockstep {

/// The price of the plan that `key` names: the journal's, else what `replay` finds, which is then
/// added. `limits` are what the replay is given; a step that is not done by `latest` is in the
/// journal, too. ERRORS: those of both.
Price price_once(PriceJournal& journal, const std::string& key, const ReplayLimits& limits,
                 const std::function<PricedStep(const ReplayLimits& limits)>& replay);

/// What must be said of a search's prices: sprayed routes that were not asked for, plans too large
/// to be replayed, a best plan without a price, the deadline.
struct SearchFacts {
  bool sprayed = false;
  std::int64_t too_large = 0;
  bool best_priced = true, stopped = false;
};
std::vector<std::string> search_notes(const JobPlanOptions& options, const SearchFacts& facts);

/// Prices the best plans again with the input's stragglers, and puts them in that order. The mean
/// steps, best first; empty: no stragglers. `replay(job, stragglers, step)` prices one step of a
/// plan's job with its model.
template <class Problem, class Plan, class Replay>
std::vector<double> expect_stragglers(const JobPlanInput& input, const Problem& problem,
                                      std::vector<Plan>& plans, const Replay& replay) {
  constexpr std::size_t kFinalists = 3;
  std::vector<double> expected_s;
  if (input.stragglers.empty()) {
    return expected_s;
  }
  const std::size_t count = std::min(kFinalists, plans.size());
  std::vector<std::pair<double, Plan>> finalists;
  for (std::size_t i = 0; i < count; ++i) {
    const auto job = with_model(problem.base, plans[i].job);
    const StepSample sample =
        sample_steps(input.stragglers, input.options.steps, input.options.seed, problem.threads,
                     [&](std::span<const Straggler> stragglers, std::int64_t step) {
                       return Time::seconds(replay(job, stragglers, step).step_s);
                     });
    finalists.emplace_back(sample.mean.seconds(), plans[i]);
  }
  std::ranges::stable_sort(finalists, {}, [&](const std::pair<double, Plan>& each) {
    Plan plan = each.second;
    plan.step.step_s = each.first;
    return objective_value(problem, plan);
  });
  for (std::size_t i = 0; i < count; ++i) {
    expected_s.push_back(finalists[i].first);
    plans[i] = finalists[i].second;
  }
  return expected_s;
}

/// The command around a search: runs it with progress on a terminal, prices the best again with
/// stragglers, writes what was asked for and prints it. A planner has
///
///   Report        with `result` and `expected_s`
///   problem()     that the search is of
///   search(tell)  -> the result; tells its work
///   replay(job, stragglers, step) -> PricedStep
///   explain(report)      fills in the rest of it; false: was interrupted there
///   json(report), text(report), write(report, json)
template <class Planner>
ExitCode run_priced_search(const JobPlanInput& input, Planner& planner) {
  const JobPlanOptions& options = input.options;
  typename Planner::Report report;
  const Interruptible interruptible;
  {
    Progress progress("planning", options.effort + options.effort / 2);
    report.result = planner.search([&](std::int64_t work) { progress.update(work); });
  }
  const bool stopped = interruptible.stopped();
  if (!stopped) {
    report.expected_s =
        expect_stragglers(input, planner.problem(), report.result.plans,
                          [&](const auto& job, std::span<const Straggler> stragglers,
                              std::int64_t step) { return planner.replay(job, stragglers, step); });
  }
  const bool whole = planner.explain(report) && !stopped;
  if (!whole) {
    say_stopped(
        stopped ? "the best plans found by now" : "what would change the choice is by closed form",
        !options.output.empty() || options.report.wanted());
  }
  const std::string json = with_command(to_text(planner.json(report)));
  if (whole) {
    if (!options.output.empty()) {
      planner.write(report, json);
    }
    write_reports(options.report, "plan", json);
  }
  write_file("-", options.json ? json : for_terminal(planner.text(report)));
  return whole ? ExitCode::kDone : ExitCode::kInterrupted;
}

}  // namespace lockstep
