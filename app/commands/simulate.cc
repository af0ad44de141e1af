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
#include "app/simulate/job_figures.h"
#include "app/simulate/job_matrix.h"
#include "app/simulate/run_analytic.h"
#include "app/simulate/run_flow.h"
#include "app/simulate/run_packet.h"
#include "app/simulate/run_steps.h"
#include "app/simulate/sensitivity.h"
#include "app/simulate/simulate_options.h"
#include "app/simulate/simulate_outputs.h"
#include "app/simulate/step_document.h"
#include "app/simulate/step_input.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/stop_signal.h"
#include "report/end_to_end_csv.h"
#include "report/step_json.h"
#include "report/step_table.h"
#include "simulator/replay/straggler.h"
#include "trace/job_meta.h"
#include "trace/perfetto_proto.h"
#include "trace/read_trace.h"
#include "trace/timeline.h"

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

/// What was given and only formulas heed.
std::vector<const char*> flags_of_formulas(const SimulateOptions& options) {
  std::vector<const char*> given;
  for (const auto& [flag, is_given] :
       {std::pair("--gpus-per-server", options.gpus_per_server > 0),
        std::pair("--nics-per-server", options.nics_per_server > 0),
        std::pair("--nvlink", !options.nvlink.empty()), std::pair("--nic", !options.nic.empty()),
        std::pair("--nic-type", !options.nic_type.empty()),
        std::pair("--gpu-type", !options.gpu_type.empty() && !options.workload.empty()),
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

/// Checks that the engine has nothing for.
void refuse_verification(const SimulateOptions& options) {
  if (options.verify_symmetry && options.engine != "flow") {
    throw Error(fmt::format("the {} engine folds nothing that could be compared", options.engine))
        .field("--verify-symmetry")
        .hint("use --engine flow");
  }
  if (options.paranoid && options.engine == "analytic") {
    throw Error("formulas have no transfers to check")
        .field("--paranoid")
        .hint("use --engine flow or --engine packet");
  }
}

StepResult run_engine(const SimulateOptions& options, const Workload& workload,
                      const Topology* topology, Timeline* timeline) {
  refuse_verification(options);
  if (options.engine != "packet") {
    for (const auto& [flag, text] :
         {std::pair("--samples", options.samples), std::pair("--fct", options.fct_file),
          std::pair("--pfc", options.pfc_file),
          std::pair("--traffic-class", options.traffic_class)}) {
      if (!text.empty()) {
        throw Error(fmt::format("the {} engine has no packets", options.engine))
            .field(flag)
            .hint("use --engine packet");
      }
    }
  }
  if (options.engine == "analytic") {
    if (!options.error_budget.empty()) {
      throw Error("formulas have no transfers that could be told from others")
          .field("--error-budget")
          .hint("use --engine flow or --engine packet");
    }
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
  if (options.engine == "packet" && options.no_symmetry) {
    result.warnings.emplace_back("--no-symmetry changes nothing in the packet engine");
  }
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

/// Everything is worked out before the first output is touched.
void write_outputs(const SimulateOptions& options, const StepResult& result,
                   const Topology* topology, const Timeline& timeline, const ExactJob* job,
                   const std::vector<Sensitivity>& sensitivity,
                   const std::optional<JobMatrix>& matrix) {
  Json more = more_of_step(options, result, job);
  std::string text;
  if (job != nullptr) {
    text += "\n" + memory_text(*job);
    for (const MemoryTimeline& each : result.memory) {
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
  const std::string lines = job != nullptr && result.jobs.size() < 2
                                ? job_lines(*job, result.mean_step(), result.sample.has_value())
                                : "";
  std::string json;
  if (options.json || options.output.wanted()) {
    json = with_command(step_json(result, topology, more));
  }
  if (!options.csv_dir.empty()) {
    make_folder(options.csv_dir);  // before the first file is written
  }
  write_reports(options.output, "simulate", json);
  if (!options.csv_dir.empty()) {
    const std::string prefix =
        !options.csv_prefix.empty() ? options.csv_prefix : name_of_job(options) + "-";
    const EndToEndLayout layout =
        options.engine == "analytic" ? EndToEndLayout::kAnalytical : EndToEndLayout::kNs3;
    const std::string table = end_to_end_csv(result, layout, prefix);
    write_file((fs::path(options.csv_dir) / end_to_end_name(prefix)).string(), table);
  }
  if (!options.trace.empty()) {
    if (options.rows != nullptr) {
      AtomicFile meta(fs::path(options.trace).replace_extension(".yaml").string());
      meta.write(to_yaml_text(*options.meta));
      meta.flush();
      write_trace(*options.rows, options.trace);
      meta.commit();
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
                      : for_terminal(step_table(result, topology, terminal_width(), lines) + text));
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

/// What --list-stragglers --json prints (docs/formats/simulate-json.md).
Json stragglers_json() {
  Json models = Json::array();
  for (const StragglerModel* model : straggler_models()) {
    Json fields = Json::array();
    for (const StragglerField& field : model->fields) {
      fields.push_back({{"name", field.name},
                        {"help", field.help},
                        {"otherwise", field.otherwise.empty() ? Json() : Json(field.otherwise)}});
    }
    models.push_back({{"name", model->name},
                      {"usage", usage_of(*model)},
                      {"summary", model->summary},
                      {"fields", std::move(fields)}});
  }
  return {{"schema", "lockstep-stragglers/1"}, {"models", std::move(models)}};
}

ExitCode simulate(SimulateOptions& options) {
  if (options.list_stragglers) {
    write_file("-", options.json ? to_text(stragglers_json()) : straggler_help());
    return ExitCode::kDone;
  }
  check_simulate_outputs(options);
  check_report_flags(options.output);
  const StepInput input = read_step_input(options);
  const ExactJob* job = input.job ? &*input.job : nullptr;
  if (job != nullptr) {
    if (options.memory_over_time || !options.memory_csv.empty()) {
      options.memory = memory_of(*job);
    }
    for (const std::string& note : job->notes) {
      fmt::print(standard_error(), "lockstep: {}\n", note);
    }
  }
  Timeline timeline;
  const Topology* given = input.topology ? &*input.topology : nullptr;
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
  StepResult result = run_steps(options, drawn ? &timeline : nullptr,
                                [&](const SimulateOptions& each, Timeline* picture) {
                                  return run_engine(each, input.workload, given, picture);
                                });
  label_step(options, result);
  const auto tracks = std::ranges::count(timeline.tracks, -1, &TimelineTrack::parent);
  timeline.ranks = std::cmp_less(tracks, result.gpus) ? result.gpus : 0;
  result.warnings.insert(result.warnings.begin(), input.warnings.begin(), input.warnings.end());
  print_warnings(result.warnings);
  const auto steps = static_cast<std::int64_t>(result.sample ? result.sample->totals.size() : 1);
  if (steps < options.steps) {
    fmt::print(standard_error(), "lockstep: stopped: the first {} of {} steps\n", steps,
               options.steps);
    write_outputs(options, result, given, timeline, job, {}, {});
    return ExitCode::kInterrupted;
  }
  std::vector<Sensitivity> sensitivity;
  if (options.sensitivity) {
    const SimulateOptions other = once_more(options);
    sensitivity = sensitivities(input.workload, *given, options.threads,
                                [&](const Workload& work, const Topology& fabric) {
                                  return run_engine(other, work, &fabric, nullptr).total;
                                });
  }
  std::optional<JobMatrix> matrix;
  if (options.job_matrix) {
    matrix = job_matrix(
        input.workload, given->count(NodeKind::kGpu), options.threads, [&](const Workload& some) {
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
                         const Time time = run_engine(other, input.workload, given, &picture).total;
                         return std::pair(time, std::move(picture));
                       });
  }
  write_outputs(options, result, given, timeline, job, sensitivity, matrix);
  return ExitCode::kDone;
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
