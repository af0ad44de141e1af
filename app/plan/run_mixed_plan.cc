#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/flag_value.h"
#include "app/plan/job_plan_input.h"
#include "app/plan/mixed_plan_report.h"
#include "app/plan/priced_search.h"
#include "generator/exact/rank_sizes.h"

namespace lockstep {
namespace {

/// A plan's job as one word, for the journal.
std::string key_of(const MixedJob& job) {
  std::string key =
      fmt::format("tp {} cp {} {} ep {} etp {} copies {} mbs {} sp {} recompute {} zero {} x{}",
                  job.base.tp, job.base.cp, static_cast<int>(job.base.context_comm), job.base.ep,
                  expert_tp(job.base), job.copies, job.base.micro_batch, job.base.sequence_parallel,
                  static_cast<int>(job.base.recompute), static_cast<int>(job.base.sharding),
                  job.base.hsdp_replicas);
  for (const PipelineKind& kind : job.kinds) {
    key += fmt::format(" | {} of {} on {}:", kind.microbatches, fmt::join(kind.layers, "-"),
                       fmt::join(kind.gpu_type, "-"));
    for (const std::vector<std::int32_t>& stages : kind.first_rank) {
      key += fmt::format(" {}", fmt::join(stages, "-"));
    }
  }
  return key;
}

/// Flags whose part of the space these plans do not have.
void refuse_axes(const PlanAxes& axes) {
  const auto refuse_if = [](bool unknown, std::string_view flag) {
    if (unknown) {
      throw Error("plans whose pipelines may differ do not have this")
          .field(fmt::format("--{}", flag))
          .hint("--replicas alike, with --gpu_type, plans pipelines that are all cut alike");
    }
  };
  const auto lacks = [](const auto& values, auto wanted) {
    return !values.empty() && std::ranges::count(values, wanted) == 0;
  };
  refuse_if(lacks(axes.schedule, std::string("1f1b")), "schedule");
  refuse_if(!axes.rank_order.empty(), "rank_order");
  refuse_if(!axes.stage_layers.empty(), "stage_layers");
  refuse_if(axes.first_stage_layers > 0, "first_stage_layers");
  refuse_if(axes.last_stage_layers > 0, "last_stage_layers");
  if (axes.gpus.size() > 1) {
    throw Error("several numbers of GPUs")
        .field("--gpus")
        .expected(
            "one, where pipelines may differ: those that are not worth their cost are left out");
  }
}

class MixedPlanner {
 public:
  explicit MixedPlanner(const JobPlanInput& input)
      : input_(input), options_(input.options), sprayed_(options_.spray) {
    problem_.base = input.exact.job;
    problem_.axes = input.words.axes;
    refuse_axes(problem_.axes);
    problem_.topology = &input.topology;
    take_pools();
    problem_.operator_times = [this] {
      std::vector<OperatorTime> times;
      for (const ExactJob& exact : by_pool_) {
        auto own = std::make_shared<ComputeTimes>(compute_times_of(exact));
        times.emplace_back([own](const Operator& op) { return (*own)(op); });
      }
      return times;
    };
    problem_.objective = input.objective;
    problem_.effort = options_.effort;
    problem_.threads = input.threads;
    problem_.stop = input.stop;
    problem_.simplify = [this] { return !std::exchange(sprayed_, true); };
  }

  using Report = MixedPlanReport;

  ExitCode run() { return run_priced_search(input_, *this); }
  const MixedProblem& problem() const { return problem_; }

  MixedSearchResult search(const std::function<void(std::int64_t)>& tell) {
    PriceJournal journal(options_.resume, input_.problem_text() + " --replicas any");
    const PriceMixed price = [&](const MixedJob& job) {
      const std::string key = key_of(job) + (sprayed_ && !options_.spray ? " --spray" : "");
      return price_once(journal, key,
                        {options_.max_replay, 2 * options_.effort, problem_.stop, Time::max()},
                        [&](const ReplayLimits& limits) { return replay(job, {}, 0, limits); });
    };
    return search_mixed(problem_, price, tell);
  }

  PricedStep replay(const MixedJob& job, std::span<const Straggler> stragglers, std::int64_t step,
                    ReplayLimits limits = {}) const {
    return priced_step(input_, mixed_workload(job, problem_.operator_times()), sprayed_, stragglers,
                       step, std::move(limits));
  }

  bool explain(MixedPlanReport& report) const {
    const MixedSearchResult& result = report.result;
    report.sprayed = sprayed_;
    report.notes = notes_;
    if (problem_.axes.tp.empty() && crosses_servers()) {
      report.notes.emplace_back("no plan has tp across servers; --replicas alike plans those, too");
    }
    std::ranges::move(search_notes(options_, {sprayed_, result.too_large,
                                              result.plans.front().priced, result.stopped}),
                      std::back_inserter(report.notes));
    report.tipping = mixed_tipping(problem_, result);
    return true;
  }

  Json json(const MixedPlanReport& report) const {
    return mixed_plan_json(input_, problem_, report);
  }
  std::string text(const MixedPlanReport& report) const {
    return mixed_plan_text(input_, problem_, report);
  }
  void write(const MixedPlanReport& report, const std::string& json) const {
    write_mixed_plan(input_, problem_, report, json);
  }

 private:
  /// Whether the GPUs are on more than one server.
  bool crosses_servers() const {
    std::size_t servers = 0;
    for (const GpuPool& pool : problem_.pools) {
      servers += pool.servers.size();
    }
    return servers > 1;
  }

  /// The GPU types that a plan may use; others are told of.
  void take_pools() {
    for (GpuPool& pool : gpu_pools(input_.topology, problem_.axes.gpus.back())) {
      const GpuSpec* gpu = find_gpu_spec(pool.type);
      const std::string who =
          fmt::format("{}: its {} {} GPUs", options_.topology, pool.gpus(), pool.type);
      if (gpu == nullptr) {
        notes_.push_back(
            fmt::format("{} are left out of all plans: no GPU type of that name is known, so "
                        "there are no times for it (--gpu_type takes all for one type)",
                        who));
        continue;
      }
      if (!supports(*gpu, problem_.base.precision)) {
        notes_.push_back(fmt::format("{} are left out of all plans: they have no {}", who,
                                     to_text(problem_.base.precision)));
        continue;
      }
      ExactJob exact = input_.exact;
      exact.job.gpu_type = pool.type;
      if (input_.exact.gpu_type_given) {
        exact.job.gpu_type = problem_.base.gpu_type;
        gpu = &gpu_spec(exact.job.gpu_type);
        pool.type = gpu->name;
      }
      pick_profile(exact);
      by_pool_.push_back(std::move(exact));
      problem_.rates.push_back(rates_for(options_, pool.type));
      pool.memory = options_.max_memory.empty()
                        ? gpu->memory
                        : flag_value("--max-memory", options_.max_memory, parse_bytes);
      problem_.pools.push_back(std::move(pool));
    }
    if (problem_.pools.empty()) {
      Error error(fmt::format("{} has no GPUs that a plan can use", options_.topology));
      for (const std::string& note : notes_) {
        error.add_context(note);
      }
      throw std::move(error).field("--topology");
    }
  }

  /// A profile is of one type: the others take the roofline's times.
  void pick_profile(ExactJob& exact) {
    if (exact.measured == nullptr) {
      return;
    }
    const OperatorProfile& profile = *exact.measured;
    const GpuSpec* measured = find_gpu_spec(profile.gpu);
    const GpuSpec& own = gpu_spec(exact.job.gpu_type);
    if (measured != nullptr && measured->name != own.name) {
      notes_.push_back(fmt::format("{} is of {}: times of {} are the roofline's", exact.profile,
                                   measured->name, own.name));
      exact.profile.clear();
      exact.measured.reset();
    }
  }

  const JobPlanInput& input_;
  const JobPlanOptions& options_;
  MixedProblem problem_;
  std::vector<ExactJob> by_pool_;
  std::vector<std::string> notes_;
  bool sprayed_ = false;
};

}  // namespace

ExitCode run_mixed_plan(const JobPlanInput& input) { return MixedPlanner(input).run(); }

}  // namespace lockstep
