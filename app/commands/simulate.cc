#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/generate_exact.h"
#include "app/real_rates.h"
#include "app/simulate/byteps_trace.h"
#include "app/simulate/interference_flag.h"
#include "app/simulate/job_figures.h"
#include "app/simulate/job_matrix.h"
#include "app/simulate/run_analytic.h"
#include "app/simulate/run_flow.h"
#include "app/simulate/run_packet.h"
#include "app/simulate/scenario.h"
#include "app/simulate/sensitivity.h"
#include "app/simulate/simulate_options.h"
#include "app/simulate/simulate_outputs.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_capture.h"
#include "base/stop_signal.h"
#include "report/detail_json.h"
#include "report/end_to_end_csv.h"
#include "report/step_json.h"
#include "report/step_table.h"
#include "simulator/replay/megatron_pipeline.h"
#include "simulator/replay/shared_step.h"
#include "simulator/replay/step_sample.h"
#include "topologies/topology_file.h"
#include "trace/job_meta.h"
#include "trace/perfetto_proto.h"
#include "trace/read_trace.h"
#include "trace/timeline.h"
#include "workloads/read_workload.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep simulate --workload workloads/samples/gpt-tiny-8gpu-tp8.txt --topology Spectrum-X:g=8
  lockstep simulate --workload workloads/samples/gpt13b-128gpu-tp8.txt \
      --topology Spectrum-X:g=128 --trace step.json.gz
  lockstep simulate --model llama3-8b --gpus 64 --tp 8 --pp 2 --global-batch 64 --sp \
      --topology Spectrum-X:g=64
  lockstep simulate --engine analytic --workload workloads/samples/gpt-tiny-8gpu-tp8.txt \
      --nvlink 360GBps --nic 48.5GBps --csv .
)";

namespace fs = std::filesystem;

/// What a file of the job's results is named after: its workload, or its model.
std::string name_of_job(const SimulateOptions& options) {
  if (!options.workload.empty()) {
    return fs::path(options.workload).stem().string();
  }
  for (std::size_t i = 0; i < options.job.size(); ++i) {
    const std::string& flag = options.job[i];
    if (flag.starts_with("--model") || flag.starts_with("--from-")) {
      const std::size_t equals = flag.find('=');
      if (equals != std::string::npos || i + 1 < options.job.size()) {
        return fs::path(equals == std::string::npos ? options.job[i + 1] : flag.substr(equals + 1))
            .filename()
            .string();
      }
    }
  }
  return "job";
}

/// A model and its job. --gpus and --gpu-type are flags of both commands.
ExactJob job_of(const SimulateOptions& options) {
  std::vector<std::string> words = options.job;
  if (options.gpus > 0) {
    words.insert(words.end(), {"--gpus", std::to_string(options.gpus)});
  }
  if (!options.gpu_type.empty()) {
    words.insert(words.end(), {"--gpu-type", options.gpu_type});
  }
  return exact_job(words);
}

Workload read_with_warnings(const std::string& file, std::vector<std::string>& warnings) {
  Warnings found;
  Workload workload = read_workload(file, &found);
  for (const Warnings::Entry& entry : found.entries()) {
    warnings.push_back(entry.count == 1 ? entry.text
                                        : fmt::format("{} ({} times)", entry.text, entry.count));
  }
  return workload;
}

/// Appends the jobs of --beside, each with a name of its own.
void add_beside(const SimulateOptions& options, Workload& workload,
                std::vector<std::string>& warnings) {
  for (const std::string& file : options.beside) {
    Workload other = read_with_warnings(file, warnings);
    for (WorkloadJob& job : other.jobs) {
      const auto taken = [&](const std::string& name) {
        return std::ranges::find(workload.jobs, name, &WorkloadJob::name) != workload.jobs.end();
      };
      const std::string name = job.name;
      for (int number = 2; taken(job.name); ++number) {
        job.name = fmt::format("{}-{}", name, number);
      }
      workload.jobs.push_back(std::move(job));
    }
  }
}

Workload load_workload(const SimulateOptions& options, std::vector<std::string>& warnings) {
  Workload workload = read_with_warnings(options.workload, warnings);
  if (options.gpus > 0) {
    if (workload.jobs.size() != 1) {
      throw Error("several jobs: --gpus cannot say whose GPUs it means").at(options.workload);
    }
    workload.jobs.front().parallel.gpus = options.gpus;
  }
  add_beside(options, workload, warnings);
  for (WorkloadJob& each : workload.jobs) {
    if (options.semantics == "megatron" && std::holds_alternative<LayerTable>(each.work)) {
      try {
        each = megatron_pipeline(each);
      } catch (Error& error) {
        throw std::move(error).at(options.workload);
      }
    }
  }
  return workload;
}

/// What was given and only formulas heed.
std::vector<const char*> flags_of_formulas(const SimulateOptions& options) {
  std::vector<const char*> given;
  for (const auto& [flag, is_given] :
       {std::pair("--nics-per-server", options.nics_per_server > 0),
        std::pair("--nvlink", !options.nvlink.empty()), std::pair("--nic", !options.nic.empty()),
        std::pair("--nic-type", !options.nic_type.empty()),
        std::pair("--busbw", !options.busbw.empty()),
        std::pair("--ratios", !options.ratios.empty()),
        std::pair("--dp-overlap", options.dp_overlap > 0),
        std::pair("--tp-overlap", options.tp_overlap > 0),
        std::pair("--ep-overlap", options.ep_overlap > 0)}) {
    if (is_given) {
      given.push_back(flag);
    }
  }
  return given;
}

StepResult run_engine(const SimulateOptions& options, const Workload& workload,
                      const Topology* topology, Timeline* timeline) {
  if (options.engine != "packet") {
    for (const auto& [flag, text] :
         {std::pair("--samples", options.samples), std::pair("--fct", options.fct_file),
          std::pair("--pfc", options.pfc_file), std::pair("--error-budget", options.error_budget),
          std::pair("--traffic-class", options.traffic_class)}) {
      if (!text.empty()) {
        throw Error(fmt::format("the {} engine has no packets", options.engine))
            .field(flag)
            .hint("use --engine packet");
      }
    }
  }
  if (options.engine == "analytic") {
    return run_analytic(workload, topology, options);
  }
  if (options.engine == "packet") {
    refuse_real_rates(options);
  }
  if (topology == nullptr) {
    throw Error(fmt::format("the {} engine needs a topology", options.engine))
        .field("--topology")
        .expected("a file, or a template such as Spectrum-X:g=128");
  }
  StepResult result = options.engine == "packet"
                          ? run_packet(workload, *topology, options, timeline)
                          : run_flow(workload, *topology, options, timeline);
  for (const char* flag : flags_of_formulas(options)) {
    result.warnings.push_back(fmt::format(
        "{} changes nothing in the {} engine, which goes by the topology", flag, options.engine));
  }
  return result;
}

std::string memory_csv(const StepResult& result) {
  std::string text = "rank,stage,from_s,held_bytes\n";
  for (const MemoryTimeline& each : result.memory) {
    for (const MemoryPoint& point : each.points) {
      text += fmt::format("{},{},{:.12f},{}\n", each.rank, each.stage, point.when.seconds(),
                          point.held.count());
    }
  }
  return text;
}

/// What the ranks of a stage hold.
std::function<RankMemory(std::int32_t)> memory_of(const ExactJob& job) {
  return [&job](std::int32_t index) {
    const StageMemory& stage = job.memory[static_cast<std::size_t>(index)];
    RankMemory memory;
    memory.always = stage.weights + stage.gradients + stage.optimizer;
    memory.kept = stage.kept;
    memory.within_forward = stage.gathered;
    memory.within_backward = stage.working;
    return memory;
  };
}

/// Everything is worked out before the first output is touched.
void write_outputs(const SimulateOptions& options, const StepResult& result,
                   const Topology* topology, const Timeline& timeline, const ExactJob* job,
                   const std::vector<Sensitivity>& sensitivity,
                   const std::optional<JobMatrix>& matrix) {
  Json more = Json::object();
  std::string text;
  if (job != nullptr) {
    more["memory"] = memory_json(*job);
    more["headline"] = headline_json(*job, result.total, options.gpu_hour_price);
    text += "\n" + memory_text(*job);
    for (const MemoryTimeline& each : result.memory) {
      Json& peaks = more["memory"]["over_time"];
      peaks.push_back({{"rank", each.rank},
                       {"stage", each.stage},
                       {"peak_bytes", each.peak.count()},
                       {"peak_at_s", each.peak_at.seconds()}});
      text += fmt::format("rank {} of stage {} holds most {} into the step: {}\n", each.rank,
                          each.stage, to_text(each.peak_at), to_text(each.peak));
    }
  }
  if (!sensitivity.empty()) {
    more["sensitivity"] = sensitivity_json(sensitivity, result.total);
    text += "\n" + sensitivity_text(sensitivity, result.total);
  }
  if (matrix) {
    more["job_matrix"] = job_matrix_json(*matrix);
    text += "\n" + job_matrix_text(*matrix);
  }
  if (options.detail != nullptr && job != nullptr) {
    more["roofline"] = roofline_json(*job);
  }
  if (options.detail != nullptr && !options.detail->classes.empty()) {
    more["detail"] = detail_json(*options.detail);
  }
  std::string json;
  if (options.json || options.output.wanted()) {
    json = with_command(step_json(result, topology, more));
  }
  write_reports(options.output, "simulate", json);

  if (!options.csv_dir.empty()) {
    const std::string prefix =
        !options.csv_prefix.empty() ? options.csv_prefix : name_of_job(options) + "-";
    const EndToEndLayout layout =
        options.engine == "analytic" ? EndToEndLayout::kAnalytical : EndToEndLayout::kNs3;
    const std::string table = end_to_end_csv(result, layout, prefix);
    make_folder(options.csv_dir);
    write_file((fs::path(options.csv_dir) / end_to_end_name(prefix)).string(), table);
  }
  if (!options.trace.empty()) {
    if (options.rows != nullptr) {
      write_trace(*options.rows, options.trace);
      write_file(fs::path(options.trace).replace_extension(".yaml").string(),
                 to_yaml_text(*options.meta));
    } else if (options.trace.ends_with(".csv.gz")) {
      write_timeline_csv(timeline, options.trace);
    } else if (is_perfetto_proto(options.trace)) {
      write_perfetto_proto(timeline, options.trace);
    } else {
      write_chrome_trace(timeline, options.trace);
    }
  }
  if (!options.memory_csv.empty()) {
    write_file(options.memory_csv, memory_csv(result));
  }
  write_file("-", options.json
                      ? json
                      : for_terminal(step_table(result, topology, terminal_width()) + text));
}

void print_warnings(const std::vector<std::string>& warnings) {
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < std::min(warnings.size(), kShown); ++i) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warnings[i]);
  }
  if (warnings.size() > kShown) {
    fmt::print(standard_error(), "lockstep: and {} more warnings; --json lists them\n",
               warnings.size() - kShown);
  }
}

/// The stragglers of --straggler and of the scenario, in this order.
std::vector<Straggler> read_stragglers(const SimulateOptions& options) {
  std::vector<Straggler> stragglers;
  for (const std::string& spec : options.straggler_specs) {
    stragglers.push_back(Straggler::parse(spec));
  }
  if (!options.scenario.empty()) {
    constexpr Bytes kMostYaml(1 << 24);  // its tree takes 75 times as much
    const FileText text(options.scenario, kMostYaml);
    for (Straggler& straggler : parse_scenario(text.view(), options.scenario)) {
      stragglers.push_back(std::move(straggler));
    }
  }
  return stragglers;
}

/// For a further run, of which only the time is wanted: it writes nothing, and files that the step
/// at hand has written stay as they are.
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

/// The step; what the stragglers cost, and several steps, by further runs.
StepResult run_steps(const SimulateOptions& given, const Workload& workload,
                     const Topology* topology, Timeline* timeline) {
  SimulateOptions options = given;
  SharedStep shared((given.no_straggler_prices ? 1 : runs_to_price(given.stragglers.size())) +
                    static_cast<std::size_t>(given.steps - 1));
  options.shared = &shared;
  const RunStep run = [&](std::span<const Straggler> stragglers, std::int64_t step) {
    SimulateOptions other = once_more(options);
    other.stragglers.assign(stragglers.begin(), stragglers.end());
    other.step = step;
    return run_engine(other, workload, topology, nullptr).total;
  };
  const auto whole = [&] { return run_engine(options, workload, topology, timeline); };
  StepResult result = options.no_straggler_prices
                          ? whole()
                          : price_stragglers(options.stragglers, options.threads, whole, run);
  if (options.steps > 1) {
    std::vector<Trace> traces(static_cast<std::size_t>(options.steps));
    const RunStep traced = [&](std::span<const Straggler>, std::int64_t step) {
      if (step == options.step) {
        return result.total;
      }
      SimulateOptions other = once_more(options);
      JobMeta meta;
      other.step = step;
      other.rows = options.rows != nullptr ? &traces[static_cast<std::size_t>(step)] : nullptr;
      other.meta = &meta;
      return run_engine(other, workload, topology, nullptr).total;
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

ExitCode simulate(SimulateOptions& options) {
  if (options.list_stragglers) {
    write_file("-", straggler_help());
    return ExitCode::kDone;
  }
  check_simulate_outputs(options);
  check_report_flags(options.output);
  options.stragglers = read_stragglers(options);
  std::vector<std::string> warnings;
  std::optional<ExactJob> job;
  Workload workload;
  if (options.workload.empty()) {
    job = job_of(options);
    workload = exact_workload_of(*job).workload;
    if (options.memory_over_time || !options.memory_csv.empty()) {
      options.memory = memory_of(*job);
    }
    warnings = job->warnings;
    add_beside(options, workload, warnings);
    for (const std::string& note : job->notes) {
      fmt::print(standard_error(), "lockstep: {}\n", note);
    }
  } else {
    workload = load_workload(options, warnings);
  }
  std::optional<Topology> topology;
  if (!options.topology.empty()) {
    topology = topology_from(options.topology, &warnings);
  }
  options.interference_model =
      interference_of_flag(options.interference, topology ? &*topology : nullptr, warnings);
  Timeline timeline;
  const Topology* given = topology ? &*topology : nullptr;
  Trace rows;
  JobMeta meta;
  if (has_whatif_columns(options.trace)) {
    options.rows = &rows;
    options.meta = &meta;
  }
  StepDetail detail;
  if (options.detail_wanted || options.output.wanted()) {
    options.detail = &detail;
  }
  const bool drawn = !options.trace.empty() && !has_whatif_columns(options.trace);
  const Interruptible interruptible;
  StepResult result = run_steps(options, workload, given, drawn ? &timeline : nullptr);
  result.workload =
      options.workload.empty() ? fmt::format("{}", fmt::join(options.job, " ")) : options.workload;
  result.topology = options.topology;
  result.engine = options.engine;
  result.semantics = options.semantics;
  result.flavour = options.flavour;
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  print_warnings(result.warnings);
  const auto steps = static_cast<std::int64_t>(result.sample ? result.sample->totals.size() : 1);
  if (steps < options.steps) {
    fmt::print(standard_error(), "lockstep: stopped: the first {} of {} steps\n", steps,
               options.steps);
    write_outputs(options, result, given, timeline, job ? &*job : nullptr, {}, {});
    return ExitCode::kInterrupted;
  }
  std::vector<Sensitivity> sensitivity;
  if (options.sensitivity) {
    const SimulateOptions other = once_more(options);
    sensitivity = sensitivities(workload, *given, options.threads,
                                [&](const Workload& work, const Topology& fabric) {
                                  return run_engine(other, work, &fabric, nullptr).total;
                                });
  }
  std::optional<JobMatrix> matrix;
  if (options.job_matrix) {
    matrix = job_matrix(
        workload, given->count(NodeKind::kGpu), options.threads, [&](const Workload& some) {
          std::vector<Time> ends;
          for (const JobResult& each : run_engine(once_more(options), some, given, nullptr).jobs) {
            ends.push_back(each.end);
          }
          return ends;
        });
  }
  if (!options.byteps_trace.empty()) {
    write_byteps_trace(options.byteps_trace, traced_steps(options.steps), *given,
                       [&](std::int64_t step) {
                         SimulateOptions other = once_more(options);
                         other.step = step;
                         other.trace_ranks = given->gpus_per_server;
                         Timeline picture;
                         const Time time = run_engine(other, workload, given, &picture).total;
                         return std::pair(time, std::move(picture));
                       });
  }
  write_outputs(options, result, given, timeline, job ? &*job : nullptr, sensitivity, matrix);
  return ExitCode::kDone;
}

/// Words that are no flags of ours describe a job, if there is no workload file.
void take_job(CLI::App& app, SimulateOptions& options) {
  options.job = app.remaining();
  if (options.list_stragglers) {
    return;
  }
  if (options.workload.empty() && options.job.empty()) {
    throw Error("simulate: no workload is given")
        .expected("--workload FILE, or --model NAME with the flags of a job")
        .hint("'lockstep simulate --help' shows what there is, with examples");
  }
  if (!options.workload.empty() && !options.job.empty()) {
    if (options.job.front() == "--model" || options.job.front().starts_with("--model=")) {
      throw Error("simulate: --workload gives a workload already")
          .field("--model")
          .expected("one of --workload and --model");
    }
    app.allow_extras(false);
    throw usage_error(*app.get_parent(), CLI::ExtrasError(app.get_name(), options.job));
  }
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<SimulateOptions>();
  app.allow_extras();
  define_simulate_options(app, *options);
  return [options, &app] {
    take_job(app, *options);
    return simulate(*options);
  };
}

}  // namespace

extern const Command kSimulateCommand;
const Command kSimulateCommand = {
    "simulate", "workload + topology + engine -> step time, and where the time goes", kExamples,
    define};

}  // namespace lockstep
