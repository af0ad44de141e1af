#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/flag_value.h"
#include "app/generate_exact.h"
#include "app/plan/job_plan_files.h"
#include "app/plan/job_plan_options.h"
#include "app/plan/job_plan_report.h"
#include "app/plan/job_words.h"
#include "app/plan/price_journal.h"
#include "app/report_flags.h"
#include "app/simulate/run_flow.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/output_capture.h"
#include "base/progress.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "planner/job/job_sensitivity.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_sample.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

constexpr std::size_t kFinalists = 3;  ///< priced with stragglers

PlanObjective objective_of(const std::string& text) {
  return text == "cost"     ? PlanObjective::kCost
         : text == "energy" ? PlanObjective::kEnergy
         : text == "memory" ? PlanObjective::kMemory
                            : PlanObjective::kTime;
}

double watts_of(std::string_view text) {
  const std::string_view number =
      text.ends_with('W') || text.ends_with('w') ? text.substr(0, text.size() - 1) : text;
  const std::optional<double> value = to_double(trim(number));
  if (!value || *value < 0 || *value > 1e6) {
    throw Error(fmt::format("'{}' is no power", printable(text)))
        .field("--gpu-power")
        .expected("such as 700W, or 700W:150W with what a waiting GPU takes");
  }
  return *value;
}

GpuRates rates_of(const JobPlanOptions& options) {
  GpuRates rates;
  if (!options.gpu_price.empty()) {
    const std::optional<double> price = to_double(options.gpu_price);
    if (!price || *price < 0) {
      throw Error(fmt::format("'{}' is no price", printable(options.gpu_price)))
          .field("--gpu-price")
          .expected("US dollars a GPU and hour, such as 2.50");
    }
    rates.usd_per_hour = *price;
  }
  if (!options.gpu_power.empty()) {
    const std::vector<std::string_view> parts = split(options.gpu_power, ':');
    rates.busy_watts = watts_of(parts.front());
    rates.idle_watts = parts.size() > 1 ? watts_of(parts[1]) : rates.busy_watts;
  }
  if (options.objective == "cost" && options.gpu_price.empty()) {
    throw Error("the objective cost needs a price")
        .field("--gpu-price")
        .expected("US dollars a GPU and hour");
  }
  if (options.objective == "energy" && options.gpu_power.empty()) {
    throw Error("the objective energy needs the GPU's power")
        .field("--gpu-power")
        .expected("such as 700W:150W: while it computes, while it waits");
  }
  return rates;
}

/// Whether a job's words, or its script, say how large a step is.
void require_batch(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const std::string_view flag : {"--gbs", "--global-batch", "--global_batch",
                                        "--from-megatron-args", "--from_megatron_args"}) {
      if (word.starts_with(flag)) {
        return;
      }
    }
  }
  throw Error("the sequences of a step are missing")
      .field("--gbs")
      .expected("--gbs N: plans are compared at one global batch");
}

class JobPlanner {
 public:
  explicit JobPlanner(const JobPlanOptions& options) : options_(options) {
    JobWords words = take_axes(options.words, options.forbidden);
    require_batch(words.rest);
    if (options.topology.empty()) {
      throw Error("a plan needs a cluster")
          .field("--topology")
          .expected("a file, or a template such as Spectrum-X:g=128");
    }
    exact_ = described_job(words.rest);
    if (exact_.process) {
      throw Error("plans are made for the built-in step").field("--process");
    }
    topology_ = topology_from(options.topology, &exact_.warnings);
    if (words.axes.gpus.back() > topology_.count(NodeKind::kGpu)) {
      throw Error(fmt::format("the topology has {} GPUs", topology_.count(NodeKind::kGpu)))
          .field("--gpus")
          .expected(fmt::format("at most {}", topology_.count(NodeKind::kGpu)));
    }
    compute_times_of(exact_);  // refuses a profile that cannot be read, once
    problem_.base = exact_.job;
    problem_.axes = std::move(words.axes);
    problem_.topology = &topology_;
    problem_.operator_time = [this]() -> OperatorTime {
      auto times = std::make_shared<ComputeTimes>(compute_times_of(exact_));
      return [times](const Operator& op) { return (*times)(op); };
    };
    problem_.limits.gpus_per_server = topology_.gpus_per_server;
    problem_.memory_limit = options.max_memory.empty()
                                ? gpu_spec(exact_.job.gpu_type).memory
                                : flag_value("--max-memory", options.max_memory, parse_bytes);
    problem_.objective = objective_of(options.objective);
    problem_.rates = rates_of(options);
    problem_.effort = options.effort;
    problem_.threads = options.threads > 0
                           ? options.threads
                           : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    sprayed_ = options.spray;
    if (!options.deadline.empty()) {
      const Time most = flag_value("--deadline", options.deadline, parse_time);
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(most.count_ps() / 1000);
      problem_.stop = [end] { return std::chrono::steady_clock::now() >= end; };
    }
    for (const std::string& spec : options.stragglers) {
      stragglers_.push_back(Straggler::parse(spec));
    }
    base_words_ = std::move(words.rest);
  }

  ExitCode run() {
    PriceJournal journal(options_.resume, problem_text());
    const PriceJob price = [&](const Job& job) -> std::optional<PricedStep> {
      const std::string key = fmt::format("{}{}", fmt::join(axis_words(job), " "),
                                          sprayed_ && !options_.spray ? " --spray" : "");
      if (std::optional<PricedStep> known = journal.find(key)) {
        return known;
      }
      try {
        PricedStep step = replay(job, {}, 0, {options_.max_replay, problem_.stop});
        journal.add(key, step);
        return step;
      } catch (const ReplayGivenUp&) {
        return std::nullopt;
      }
    };
    problem_.simplify = [this] {
      const bool was = std::exchange(sprayed_, true);
      return !was;
    };
    JobPlanReport report;
    const Interruptible interruptible;
    {
      Progress progress("planning", options_.effort + options_.effort / 2);
      report.result =
          search_jobs(problem_, price, [&](std::int64_t work) { progress.update(work); });
    }
    const bool stopped = interruptible.stopped();
    if (stopped) {
      fmt::print(standard_error(), "lockstep: stopped: the best plans found by now\n");
    } else {
      expect_stragglers(report);
    }
    fill(report);
    const std::string json = with_command(to_text(job_plan_json(report, problem_)));
    if (!options_.output.empty()) {
      write_job_plan(options_.output, report, exact_, problem_, json);
    }
    write_reports(options_.report, "plan", json);
    write_file("-", options_.json ? json : for_terminal(job_plan_text(report, problem_)));
    return stopped ? ExitCode::kInterrupted : ExitCode::kDone;
  }

 private:
  /// The step by the same way as `lockstep simulate --model`.
  PricedStep replay(const Job& job, std::span<const Straggler> stragglers, std::int64_t step,
                    ReplayLimits limits) const {
    ExactJob exact = exact_;
    exact.job = job;
    SimulateOptions simulate;
    simulate.topology = options_.topology;
    simulate.quiet = true;
    simulate.spray = sprayed_;
    simulate.limits = std::move(limits);
    simulate.seed = options_.seed;
    simulate.step = step;
    simulate.stragglers.assign(stragglers.begin(), stragglers.end());
    const StepResult result =
        run_flow(exact_workload_of(exact).workload, topology_, simulate, nullptr);
    PricedStep priced;
    priced.step_s = result.total.seconds();
    priced.compute_s = result.compute.seconds();
    for (std::size_t i = 0; i < priced.exposed_s.size(); ++i) {
      priced.exposed_s[i] = result.exposed_by_group[i].seconds();
    }
    return priced;
  }

  /// Prices the best plans again with the stragglers, and puts them in that order.
  void expect_stragglers(JobPlanReport& report) const {
    if (stragglers_.empty()) {
      return;
    }
    std::vector<JobPlan>& plans = report.result.plans;
    const std::size_t count = std::min(kFinalists, plans.size());
    std::vector<std::pair<double, JobPlan>> finalists;
    for (std::size_t i = 0; i < count; ++i) {
      const Job job = with_model(problem_.base, plans[i].job);
      const StepSample sample =
          sample_steps(stragglers_, options_.steps, options_.seed, problem_.threads,
                       [&](std::span<const Straggler> stragglers, std::int64_t step) {
                         return Time::seconds(replay(job, stragglers, step, {}).step_s);
                       });
      finalists.emplace_back(sample.mean.seconds(), plans[i]);
    }
    std::ranges::stable_sort(finalists, {}, [&](const auto& each) {
      JobPlan plan = each.second;
      plan.step.step_s = each.first;
      return objective_value(problem_, plan);
    });
    for (std::size_t i = 0; i < count; ++i) {
      report.expected_s.push_back(finalists[i].first);
      plans[i] = finalists[i].second;
    }
  }

  void fill(JobPlanReport& report) const {
    report.model = exact_.job.model.name;
    report.topology = options_.topology;
    report.objective = options_.objective;
    report.warnings = exact_.warnings;
    report.sprayed = sprayed_;
    const JobPlan& best = report.result.plans.front();
    if (sprayed_ && !options_.spray) {
      report.notes.push_back(
          "with hashed routes too few ranks are alike for a replay of this size: all plans are "
          "replayed with sprayed ones (--spray)");
    }
    if (report.result.too_large > 0) {
      report.notes.push_back(fmt::format(
          "{} plans that came first are too large for the replay, more than {} operations of ranks "
          "that differ: their closed form bounds them (--max-replay)",
          report.result.too_large, options_.max_replay));
    }
    if (std::string note = other_gpus(best.job); !note.empty()) {
      report.notes.push_back(std::move(note));
    }
    if (!best.priced) {
      report.notes.push_back("no plan could be replayed: the best is that of the closed form");
    }
    if (report.result.stopped) {
      report.notes.push_back("the deadline ended the search");
    }
    report.words = words_of(best.job);
    report.neighbours = neighbours(problem_, best);
    report.tipping = tipping_points(problem_, report.result);
  }

  /// Where the GPUs are not all what the times are of: which, and what that leaves out.
  std::string other_gpus(const Job& job) const {
    std::set<std::string> types;
    const std::vector<NodeId> gpus = topology_.gpus();
    for (std::int64_t rank = 0; rank < job.gpus; ++rank) {
      const Node& node = topology_.nodes[gpus[static_cast<std::size_t>(rank)].index()];
      types.insert(topology_.gpu_types[static_cast<std::size_t>(node.gpu_type)]);
    }
    const std::string& type = exact_.job.gpu_type;
    if (types == std::set{type}) {
      return {};
    }
    return fmt::format(
        "the topology's GPUs are {}, but all are taken for {} (--gpu_type){}",
        fmt::join(types, " and "), type,
        types.size() > 1 ? ": plans that give each type its share are left out" : "");
  }

  /// The command line of `lockstep simulate` for a plan.
  std::vector<std::string> words_of(const Job& job) const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < base_words_.size(); ++i) {
      if (base_words_[i] == "--gpus") {
        ++i;
        continue;
      }
      words.push_back(base_words_[i]);
    }
    std::vector<std::string> axes = axis_words(job);
    const auto batch = std::ranges::find(axes, "--gbs");
    axes.erase(batch, batch + 2);
    words.insert(words.end(), axes.begin(), axes.end());
    words.insert(words.end(), {"--topology", options_.topology});
    if (sprayed_) {
      words.emplace_back("--spray");
    }
    return words;
  }

  std::string problem_text() const {
    return fmt::format("{} on {} seed {}{}", fmt::join(base_words_, " "), options_.topology,
                       options_.seed, options_.spray ? " --spray" : "");
  }

  const JobPlanOptions& options_;
  ExactJob exact_;
  Topology topology_;
  JobProblem problem_;
  std::vector<Straggler> stragglers_;
  std::vector<std::string> base_words_;
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
    app.add_flag(
           fmt::format("--no-{}", axis),
           [&options, axis](std::int64_t) { options.forbidden.emplace_back(axis); },
           axis == "uneven" ? std::string("no plans with stages of unequal layers")
                            : fmt::format("no plans with {}", axis))
        ->group(group);
  }
  app.add_flag("--spray", options.spray, "spread every transfer over all shortest paths")
      ->group(group);
  app.add_option("--max-replay", options.max_replay,
                 "leave plans to their closed form whose replay has more operations (of ranks that "
                 "differ); 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--deadline", options.deadline,
         "end the search after so long, such as 50s, with the best found; what that is then "
         "hangs on the machine")
      ->group(group);
  app.add_option("--gpu-price", options.gpu_price, "US dollars a GPU and hour")->group(group);
  app.add_option("--gpu-power", options.gpu_power, "BUSY[:WAITING] of a GPU, such as 700W:150W")
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
  app.add_option("--resume", options.resume,
                 "file that keeps the prices of plans: a later search goes on from it")
      ->group(group);
}

ExitCode run_job_plan(const JobPlanOptions& options) {
  check_report_flags(options.report);
  return JobPlanner(options).run();
}

}  // namespace lockstep
