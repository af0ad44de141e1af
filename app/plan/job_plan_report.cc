#include "app/plan/job_plan_report.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/comm.h"

namespace lockstep {
namespace {

constexpr std::size_t kListed = 12;

/// What a step consists of on the reporting rank: computation, waiting for each kind of
/// communication and for what other stages have yet to compute, and the rest: the end of others.
struct Part {
  std::string name;
  double seconds = 0;
};

std::vector<Part> parts_of(const PricedStep& step) {
  std::vector<Part> parts = {{"computation", step.compute_s}};
  parts.push_back({"pipeline bubble", step.bubble_s});
  double rest = step.step_s - step.compute_s - step.bubble_s;
  for (std::size_t i = 0; i < step.exposed_s.size(); ++i) {
    parts.push_back(
        {fmt::format("waiting for {}", name_of(static_cast<GroupKind>(i))), step.exposed_s[i]});
    rest -= step.exposed_s[i];
  }
  parts.push_back({"other ranks", std::max(0.0, rest)});  // where there is none, sums are rounded
  return parts;
}

std::string time_text(double seconds) { return to_text(Time::seconds(seconds)); }

std::string_view unit_of(PlanObjective objective) {
  switch (objective) {
    case PlanObjective::kCost:
      return "USD a step";
    case PlanObjective::kEnergy:
      return "J a step";
    case PlanObjective::kMemory:
      return "bytes";
    case PlanObjective::kTime:
      break;
  }
  return "s a step";
}

double tokens_a_second(const JobProblem& problem, const JobPlan& plan) {
  return static_cast<double>(problem.base.global_batch) * static_cast<double>(problem.base.seq) /
         plan.step_s();
}

double dollars(const JobProblem& problem, const JobPlan& plan) {
  JobProblem other;
  other.rates = problem.rates;
  other.objective = PlanObjective::kCost;
  return objective_value(other, plan);
}

double joules(const JobProblem& problem, const JobPlan& plan) {
  JobProblem other;
  other.rates = problem.rates;
  other.objective = PlanObjective::kEnergy;
  return objective_value(other, plan);
}

std::string row(const JobProblem& problem, const JobPlan& plan) {
  std::string text = fmt::format("{:>11} {:>11} {:>11}",
                                 plan.priced         ? time_text(plan.step.step_s)
                                 : plan.beyond_s > 0 ? "> " + time_text(plan.beyond_s)
                                                     : "-",
                                 time_text(plan.floor.step_s), to_text(plan.memory));
  if (problem.rates.usd_per_hour > 0) {
    text += fmt::format(" {:>9.4g}", dollars(problem, plan));
  }
  if (problem.rates.busy_watts > 0) {
    text += fmt::format(" {:>9.4g}", joules(problem, plan) / 1e6);
  }
  return text +
         fmt::format("  {}{}\n",
                     plan.job.gpus == problem.axes.gpus.back() && problem.axes.gpus.size() == 1
                         ? ""
                         : fmt::format("{} GPUs: ", plan.job.gpus),
                     plan_text(plan.job));
}

std::string header(const JobProblem& problem) {
  std::string text = fmt::format("{:>11} {:>11} {:>11}", "step", "at least", "memory");
  text += problem.rates.usd_per_hour > 0 ? fmt::format(" {:>9}", "USD") : "";
  text += problem.rates.busy_watts > 0 ? fmt::format(" {:>9}", "MJ") : "";
  return text + "  plan\n";
}

std::string gap_text(const JobPlanReport& report, const JobProblem& problem) {
  if (report.result.proven) {
    return "proven: no plan of the space is better by the replay\n";
  }
  const double best = objective_value(problem, report.result.plans.front());
  return bound_text(report.result.bound, unit_of(problem.objective), best,
                    report.result.plans.front().priced);
}

std::string why_text(const JobPlan& best, const JobPlan& other) {
  return fmt::format("\nagainst the best of another cut, {}: {} ({:+.1f} %)\n",
                     plan_text(other.job), time_text(other.step.step_s),
                     100 * (other.step.step_s / best.step.step_s - 1)) +
         step_differences(best.step, other.step);
}

Json plan_json(const JobPlan& plan, const JobProblem& problem) {
  Json json = {{"plan", plan_text(plan.job)},
               {"flags", axis_words(plan.job)},
               {"gpus", plan.job.gpus},
               {"tp", plan.job.tp},
               {"cp", plan.job.cp},
               {"pp", plan.job.pp},
               {"dp", plan.job.dp()},
               {"ep", plan.job.ep},
               {"vpp", plan.job.vpp},
               {"micro_batch", plan.job.micro_batch},
               {"zero", static_cast<int>(plan.job.sharding)},
               {"step_s", plan.priced ? Json(plan.step.step_s) : Json()},
               {"bound_s", plan.floor.step_s},
               {"memory_bytes", plan.memory.count()}};
  if (plan.beyond_s > 0) {
    json["beyond_s"] = plan.beyond_s;
  }
  if (plan.priced) {
    json["tokens_per_s"] = tokens_a_second(problem, plan);
    Json parts = Json::object();
    for (const Part& part : parts_of(plan.step)) {
      std::string name = part.name + "_s";
      std::ranges::replace(name, ' ', '_');
      parts[name] = part.seconds;
    }
    json["parts"] = std::move(parts);
  }
  if (problem.rates.usd_per_hour > 0) {
    json["usd"] = dollars(problem, plan);
  }
  if (problem.rates.busy_watts > 0) {
    json["joules"] = joules(problem, plan);
  }
  return json;
}

Json plans_json(const std::vector<JobPlan>& plans, const JobProblem& problem) {
  Json list = Json::array();
  for (const JobPlan& plan : plans) {
    list.push_back(plan_json(plan, problem));
  }
  return list;
}

}  // namespace

std::string bound_text(double bound, std::string_view unit, double best, bool priced) {
  return fmt::format("no plan is better than {:.6g} {}{}\n", bound, unit,
                     priced ? fmt::format(": the gap is {:.2f} %", 100 * (best / bound - 1))
                            : "; what this one takes by the replay is not known");
}

std::string step_differences(const PricedStep& here, const PricedStep& there) {
  std::string text;
  const std::vector<Part> ours = parts_of(here), theirs = parts_of(there);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double more = theirs[i].seconds - ours[i].seconds;
    if (std::abs(more) >= 0.001 * here.step_s) {
      text += fmt::format("  {:<20} {:>11} here, {:>11} there: it {} {}\n", ours[i].name,
                          time_text(ours[i].seconds), time_text(theirs[i].seconds),
                          more > 0 ? "loses" : "wins", time_text(std::abs(more)));
    }
  }
  return text;
}

const JobPlan* runner_up(const JobSearchResult& result) {
  const auto shape = [](const JobPlan& plan) {
    const Job& job = plan.job;
    return std::tuple(job.gpus, job.tp, job.cp, job.pp, job.ep);
  };
  for (const JobPlan& plan : result.plans) {
    if (shape(plan) != shape(result.plans.front())) {
      return &plan;
    }
  }
  return nullptr;
}

std::string job_plan_text(const JobPlanReport& report, const JobProblem& problem) {
  const JobSearchResult& result = report.result;
  const JobPlan& best = result.plans.front();
  std::string text = fmt::format(
      "{} on {} GPUs of {}: {} cuts, {} plans looked at, {} fit {}, {} replayed{}\n", report.model,
      best.job.gpus, report.topology, result.nodes, result.leaves, result.fitting,
      to_text(problem.memory_limit), result.replays,
      result.beaten.empty() ? "" : fmt::format(", {} given up as slower", result.beaten.size()));
  text +=
      fmt::format("best: {}\n  {}{} a step, {:.4g} tokens/s; {} of memory\n", plan_text(best.job),
                  best.priced ? "" : "not replayed; at least ", time_text(best.step_s()),
                  tokens_a_second(problem, best), to_text(best.memory));
  for (const std::string& note : report.notes) {
    text += fmt::format("  {}\n", note);
  }
  if (!report.expected_s.empty()) {
    text += fmt::format("  {} a step with the stragglers\n", time_text(report.expected_s.front()));
  }
  text += gap_text(report, problem);
  text += "\nfastest for its memory\n" + header(problem);
  for (const JobPlan& plan : result.front) {
    text += row(problem, plan);
  }
  text += "\nreplayed, best first\n" + header(problem);
  for (std::size_t i = 0; i < std::min(kListed, result.plans.size()); ++i) {
    text += row(problem, result.plans[i]);
  }
  for (std::size_t i = 0; i < std::min(kListed, result.beaten.size()); ++i) {
    text += row(problem, result.beaten[i]);
  }
  if (const JobPlan* other = runner_up(result); other != nullptr) {
    text += why_text(best, *other);
  }
  text += fmt::format("\nthe best plan but for one thing, by closed form (it: {})\n",
                      time_text(best.floor.step_s));
  for (const PlanVariant& each : report.neighbours) {
    text += fmt::format("  {:<24} {:>11} {:>11}{}\n", each.what, time_text(each.plan.floor.step_s),
                        to_text(each.plan.memory), each.fits ? "" : "  does not fit");
  }
  if (!report.tipping.empty()) {
    text += "\nwhat would change the choice\n";
  }
  for (const TippingPoint& point : report.tipping) {
    const char* how = point.replayed ? "" : ", by closed form";
    if (point.factor == 0) {
      text += fmt::format("  {:<26} {}{}\n", point.what,
                          point.what.ends_with("memory") ? "nothing that was looked at"
                                                         : "nothing found, up to a factor of 8",
                          how);
    } else if (point.gain < 0) {
      text += fmt::format("  {:<26} below x {:.3g}: {} is left, {:.1f} % worse{}\n", point.what,
                          point.factor, plan_text(point.instead.job), -100 * point.gain, how);
    } else {
      text += fmt::format("  {:<26} x {:.3g}: {} wins by {:.1f} %{}\n", point.what, point.factor,
                          plan_text(point.instead.job), 100 * point.gain, how);
    }
  }
  text += fmt::format("\nlockstep simulate {}\n", fmt::join(report.words, " "));
  return text;
}

std::string job_price_text(const JobPlanReport& report, const JobProblem& problem) {
  const JobPlan& plan = report.result.plans.front();
  std::string text = fmt::format(
      "{} on {} GPUs of {}: {}\n  {} a step, {:.4g} tokens/s; {} of memory, {} {}\n", report.model,
      plan.job.gpus, report.topology, plan_text(plan.job), time_text(plan.step_s()),
      tokens_a_second(problem, plan), to_text(plan.memory),
      plan.memory <= problem.memory_limit ? "within" : "more than", to_text(problem.memory_limit));
  for (const std::string& note : report.notes) {
    text += fmt::format("  {}\n", note);
  }
  if (!report.expected_s.empty()) {
    text += fmt::format("  {} a step with the stragglers\n", time_text(report.expected_s.front()));
  }
  if (problem.objective != PlanObjective::kTime) {
    text +=
        fmt::format("  {:.6g} {}\n", objective_value(problem, plan), unit_of(problem.objective));
  }
  text += fmt::format("\n{:<24} {:>11}\n", "at least (closed form)", time_text(plan.floor.step_s));
  for (const Part& part : parts_of(plan.step)) {
    text += fmt::format("{:<24} {:>11} {:>6.1f} %\n", part.name, time_text(part.seconds),
                        100 * part.seconds / plan.step_s());
  }
  return text + fmt::format("\nlockstep simulate {}\n", fmt::join(report.words, " "));
}

Json job_price_json(const JobPlanReport& report, const JobProblem& problem) {
  const JobPlan& plan = report.result.plans.front();
  Json json = {{"schema", "lockstep-plan-price/1"},
               {"cost", "replay"},
               {"model", report.model},
               {"topology", report.topology},
               {"objective", report.objective},
               {"value", objective_value(problem, plan)},
               {"time_s", plan.step_s()},
               {"memory_limit_bytes", problem.memory_limit.count()},
               {"fits", plan.memory <= problem.memory_limit},
               {"routes", report.sprayed ? "sprayed" : "hashed"},
               {"expected_s", report.expected_s.empty() ? Json() : Json(report.expected_s)},
               {"simulate", report.words},
               {"warnings", report.warnings},
               {"notes", report.notes}};
  json.update(plan_json(plan, problem));
  return json;
}

Json job_plan_json(const JobPlanReport& report, const JobProblem& problem) {
  const JobSearchResult& result = report.result;
  const JobPlan& best = result.plans.front();
  Json neighbours_list = Json::array(), tipping = Json::array();
  for (const PlanVariant& each : report.neighbours) {
    neighbours_list.push_back({{"change", each.what},
                               {"bound_s", each.plan.floor.step_s},
                               {"memory_bytes", each.plan.memory.count()},
                               {"fits", each.fits}});
  }
  for (const TippingPoint& point : report.tipping) {
    Json one = {{"change", point.what},
                {"factor", point.factor == 0 ? Json() : Json(point.factor)},
                {"replayed", point.replayed}};
    if (point.factor != 0) {
      one["instead"] = plan_text(point.instead.job);
      one["gain"] = point.gain;
    }
    tipping.push_back(std::move(one));
  }
  const JobPlan* other = runner_up(result);
  Json left_out = Json::object();
  for (const auto& [reason, count] : result.left_out) {
    left_out[reason] = count;
  }
  return {{"schema", "lockstep-job-plan/1"},
          {"model", report.model},
          {"topology", report.topology},
          {"objective", report.objective},
          {"value", objective_value(problem, best)},
          {"bound", result.bound},
          {"gap", result.bound > 0 && best.priced
                      ? Json(objective_value(problem, best) / result.bound - 1)
                      : Json()},
          {"proven", result.proven},
          {"memory_limit_bytes", problem.memory_limit.count()},
          {"cuts", result.nodes},
          {"plans_seen", result.leaves},
          {"plans_fitting", result.fitting},
          {"replays", result.replays},
          {"too_large", result.too_large},
          {"stopped", result.stopped},
          {"routes", report.sprayed ? "sprayed" : "hashed"},
          {"search_work", result.work},
          {"best", plan_json(best, problem)},
          {"expected_s", report.expected_s.empty() ? Json() : Json(report.expected_s)},
          {"simulate", report.words},
          {"front", plans_json(result.front, problem)},
          {"plans", plans_json(result.plans, problem)},
          {"beaten", plans_json(result.beaten, problem)},
          {"runner_up", other == nullptr ? Json() : plan_json(*other, problem)},
          {"neighbours", std::move(neighbours_list)},
          {"tipping_points", std::move(tipping)},
          {"left_out", std::move(left_out)},
          {"warnings", report.warnings},
          {"notes", report.notes}};
}

}  // namespace lockstep
