#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/flag_value.h"
#include "app/generate_exact.h"
#include "app/other_gpus.h"
#include "app/plan/given_plan.h"
#include "app/plan/job_plan_files.h"
#include "app/plan/job_plan_input.h"
#include "app/plan/job_plan_options.h"
#include "app/plan/job_plan_report.h"
#include "app/plan/priced_search.h"
#include "base/stop_signal.h"
#include "planner/job/job_sensitivity.h"
#include "planner/job/mixed_space.h"
#include "planner/job/other_speeds.h"
#include "planner/job/step_bound.h"

namespace lockstep {
namespace {

/// Servers may differ, and Topology::gpus_per_server is the first one's.
std::int64_t most_gpus_of_a_server(const Topology& topology) {
  std::map<std::int32_t, std::int64_t> gpus;
  std::int64_t most = 0;
  for (const NodeId gpu : topology.gpus()) {
    most = std::max(most, ++gpus[topology.nodes[gpu.index()].server]);
  }
  return most;
}

class JobPlanner {
 public:
  explicit JobPlanner(const JobPlanInput& input)
      : input_(input), options_(input.options), exact_(input.exact), sprayed_(options_.spray) {
    compute_times_of(exact_);  // refuses a profile of another GPU, once
    problem_.base = exact_.job;
    problem_.axes = input.words.axes;
    problem_.topology = &input.topology;
    problem_.operator_time = [this]() -> OperatorTime {
      auto times = std::make_shared<ComputeTimes>(compute_times_of(exact_));
      return [times](const Operator& op) { return (*times)(op); };
    };
    problem_.limits.gpus_per_server = most_gpus_of_a_server(input.topology);
    problem_.memory_limit = options_.max_memory.empty()
                                ? gpu_spec(exact_.job.gpu_type).memory
                                : flag_value("--max-memory", options_.max_memory, parse_bytes);
    problem_.objective = input.objective;
    problem_.rates = rates_for(options_, exact_.job.gpu_type);
    problem_.effort = options_.effort;
    problem_.threads = input.threads;
    problem_.stop = input.stop;
  }

  using Report = JobPlanReport;

  /// The one plan that the axes leave, by the replay; whether it fits is told, not asked.
  ExitCode price(const ExactJob& given) {
    const Job& job = given.job;
    JobPlanReport report;
    JobPlan plan;
    plan.job = job;
    plan.memory = peak_memory(given.memory);
    plan.floor = StepBound(input_.topology, problem_.operator_time()).of(job);
    plan.step = replay(job, {}, 0);
    plan.priced = true;
    report.result.plans = {std::move(plan)};
    report.expected_s =
        expect_stragglers(input_, problem_, report.result.plans,
                          [&](const Job& each, std::span<const Straggler> stragglers,
                              std::int64_t step) { return replay(each, stragglers, step); });
    describe(report);
    const std::string json = with_command(to_text(job_price_json(report, problem_)));
    write_reports(options_.report, "plan", json);
    write_file("-", options_.json ? json : for_terminal(job_price_text(report, problem_)));
    return ExitCode::kDone;
  }

  ExitCode run() { return run_priced_search(input_, *this); }
  const JobProblem& problem() const { return problem_; }

  JobSearchResult search(const std::function<void(std::int64_t)>& tell) {
    PriceJournal journal(options_.resume, input_.problem_text());
    const PriceJob price = [&](const Job& job, const PriceLimits& limits) {
      const std::string key = fmt::format("{}{}", fmt::join(axis_words(job), " "),
                                          sprayed_ && !options_.spray ? " --spray" : "");
      ReplayLimits most{options_.max_replay, limits.most_work, problem_.stop, Time::max()};
      if (limits.enough_s < Time::max().seconds()) {
        most.latest = Time::seconds(limits.enough_s);
      }
      return price_once(journal, key, most,
                        [&](const ReplayLimits& given) { return replay(job, {}, 0, given); });
    };
    problem_.simplify = [this] { return !std::exchange(sprayed_, true); };
    return search_jobs(problem_, price, tell);
  }

  /// The step by the same way as `lockstep simulate --model`.
  PricedStep replay(const Job& job, std::span<const Straggler> stragglers, std::int64_t step,
                    ReplayLimits limits = {}) const {
    ExactJob exact = exact_;
    exact.job = job;
    return priced_step(input_, exact_workload_of(exact).workload, sprayed_, stragglers, step,
                       std::move(limits));
  }

  /// The same on a cluster with other rates.
  PricedStep replay_at(const Job& job, const Speeds& speeds, std::int64_t most_work) const {
    ExactJob exact = exact_;
    exact.job = job;
    JobPlanInput other = input_;
    other.topology = with_speeds(std::move(other.topology), speeds);
    other.latency_factor = speeds.latency;
    return priced_step(other, with_gpu_speed(exact_workload_of(exact).workload, speeds.compute),
                       sprayed_, {}, 0,
                       {options_.max_replay, most_work, problem_.stop, Time::max()});
  }

  bool explain(JobPlanReport& report) const {
    const JobSearchResult& result = report.result;
    const JobPlan& best = result.plans.front();
    report.notes =
        search_notes(options_, {sprayed_, result.too_large, best.priced, result.stopped});
    describe(report);
    report.neighbours = neighbours(problem_, best);
    if (!input_.stragglers.empty()) {
      report.notes.emplace_back("what would change the choice is not told beside stragglers");
      return true;
    }
    std::atomic<bool> interrupted = false;
    report.tipping =
        tipping_points(problem_, result,
                       [&](const Job& job, const Speeds& speeds, std::int64_t most_work) -> Price {
                         try {
                           return replay_at(job, speeds, most_work);
                         } catch (const ReplayGivenUp& given_up) {
                           return Price(given_up.work());
                         } catch (const Interrupted&) {
                           interrupted = true;
                           return Price(0);
                         }
                       });
    if (interrupted) {
      report.notes.emplace_back("stopped: what would change the choice is by closed form");
    }
    return !interrupted;
  }

  Json json(const JobPlanReport& report) const { return job_plan_json(report, problem_); }
  std::string text(const JobPlanReport& report) const { return job_plan_text(report, problem_); }
  void write(const JobPlanReport& report, const std::string& json) const {
    write_job_plan(options_.output, report, problem_, json);
  }

 private:
  /// What is told of the best plan, however it was found.
  void describe(JobPlanReport& report) const {
    const Job& best = report.result.plans.front().job;
    report.model = exact_.job.model.name;
    report.topology = options_.topology;
    report.objective = options_.objective;
    report.warnings = exact_.warnings;
    report.sprayed = sprayed_;
    if (std::string note = other_gpus(input_.topology, best); !note.empty()) {
      if (gpu_types_of(input_.topology, best.gpus).size() > 1) {
        note += ": without --gpu-type each type has its share";
      }
      report.notes.push_back(std::move(note));
    }
    if (std::string note = other_nvlinks(input_.topology); !note.empty()) {
      report.notes.push_back(std::move(note));
    }
    tell_coverage(report);
    report.words = words_of(best);
  }

  /// How much of the plans the profile knows.
  void tell_coverage(JobPlanReport& report) const {
    if (exact_.profile.empty()) {
      return;
    }
    double least = 1, most = 0;
    bool first = true;
    for (const JobPlan& plan : report.result.plans) {
      ExactJob exact = exact_;
      exact.job = with_model(problem_.base, plan.job);
      exact.notes.clear();
      exact.warnings.clear();
      exact_workload_of(exact);
      if (std::exchange(first, false)) {
        std::ranges::move(exact.notes, std::back_inserter(report.notes));
        std::ranges::move(exact.warnings, std::back_inserter(report.notes));
      }
      const auto known = static_cast<double>(exact.counts.measured + exact.counts.between);
      const double share = known / (known + static_cast<double>(exact.counts.modelled));
      least = std::min(least, share);
      most = std::max(most, share);
    }
    if (most - least > 0.1) {
      report.notes.push_back(
          fmt::format("the profile knows {:.0f} to {:.0f} % of these plans' operators: where the "
                      "roofline has the others, it decides with the plan",
                      100 * least, 100 * most));
    }
  }

  /// The command line of `lockstep simulate` for a plan.
  std::vector<std::string> words_of(const Job& job) const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < input_.words.rest.size(); ++i) {
      if (input_.words.rest[i] == "--gpus") {
        ++i;
        continue;
      }
      words.push_back(input_.words.rest[i]);
    }
    std::vector<std::string> axes = axis_words(job);
    const auto batch = std::ranges::find(axes, "--gbs");
    axes.erase(batch, batch + 2);
    words.insert(words.end(), axes.begin(), axes.end());
    words.insert(words.end(), {"--topology", options_.topology});
    if (!sprayed_) {
      words.emplace_back("--no-spray");
    }
    return words;
  }

  const JobPlanInput& input_;
  const JobPlanOptions& options_;
  ExactJob exact_;
  JobProblem problem_;
  bool sprayed_ = false;
};

}  // namespace

void define_job_plan_options(CLI::App& app, JobPlanOptions& options) {
  const char* group = "A model of ours (--model NAME and the flags of 'simulate --model')";
  app.add_option("-n,--topology", options.topology, "cluster: a file, or TEMPLATE[:flags]")
      ->group(group);
  app.add_option("--objective", options.objective, "what is best: least time, cost, energy, memory")
      ->check(CLI::IsMember({"time", "cost", "energy", "memory"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-memory", options.max_memory,
                 "of a GPU, such as 72GiB (default: what the GPU type has)")
      ->group(group);
  for (const std::string_view axis : forbidden_axes()) {
    app.add_flag_callback(
           fmt::format("--no-{}", axis), [&options, axis] { options.forbidden.emplace_back(axis); },
           axis == "uneven" ? std::string("no plans with stages of unequal layers")
                            : fmt::format("no plans with {}", axis))
        ->group(group);
  }
  app.add_flag("--spray,!--no-spray", options.spray,
               "spread every transfer over all shortest paths, or not")
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-replay", options.max_replay,
                 "leave plans to their closed form whose replay has more operations (of ranks that "
                 "differ); 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option(
      "--deadline", options.deadline,
      "end the search after so long, such as 50s, with the best found; what that is then hangs on "
      "the machine");
  app.add_option("--gpu-price", options.gpu_price,
                 "US dollars a GPU and hour; or by type: H100=2.50,A100=1.20")
      ->group(group);
  app.add_option("--gpu-power", options.gpu_power,
                 "BUSY[:WAITING] of a GPU, such as 700W:150W; or by type: H100=700W,…")
      ->group(group);
  app.add_option("--straggler", options.stragglers,
                 "expected slowness, as for simulate: the best plans are priced with it again")
      ->take_all()
      ->group(group);
  app.add_option("--steps", options.steps, "mean of so many steps with stragglers that are drawn")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", options.seed, "of these draws")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4294944442}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--replicas", options.replicas,
                 "alike: every pipeline cut as the others; any: each of its own depth, GPU types, "
                 "layers and share of the batch (default: any on a cluster of several GPU types, "
                 "unless --gpu_type names one)")
      ->check(CLI::IsMember({"alike", "any"}))
      ->group(group);
}

namespace {

ExitCode price_job_plan(const JobPlanOptions& given) {
  for (const auto& [flag, wanted] : {std::pair("--replicas", given.replicas == "any"),
                                     std::pair("--no-AXIS", !given.forbidden.empty())}) {
    if (wanted) {
      throw Error("only a search heeds this").field(flag).expected("not beside --price");
    }
  }
  JobPlanOptions options = given;
  options.words = words_with_plan(given.words, given.price);
  const JobPlanInput input = read_job_plan(options);
  ExactJob described;
  try {  // what the words around it say has been read already
    described = described_job(options.words);
    take_gpu_type(input.topology, described);
    described = worked_out(std::move(described));
  } catch (Error& error) {
    error.locate(given.price);
    throw;
  }
  return JobPlanner(input).price(described);
}

}  // namespace

ExitCode run_job_plan(const JobPlanOptions& options) {
  check_report_flags(options.report);
  if (!options.price.empty()) {
    return price_job_plan(options);
  }
  const JobPlanInput input = read_job_plan(options);
  const std::size_t types = gpu_pools(input.topology, input.words.axes.gpus.back()).size();
  const bool mixed = options.replicas.empty() ? types > 1 && !input.exact.gpu_type_given
                                              : options.replicas == "any";
  return mixed ? run_mixed_plan(input) : JobPlanner(input).run();
}

}  // namespace lockstep
