#include "app/simulate/step_input.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/other_gpus.h"
#include "app/simulate/interference_flag.h"
#include "app/simulate/scenario.h"
#include "app/usage.h"
#include "base/error.h"
#include "base/file.h"
#include "simulator/replay/megatron_pipeline.h"
#include "simulator/replay/straggler.h"
#include "topologies/topology_file.h"
#include "workloads/read_workload.h"

namespace lockstep {
namespace {

/// A model and its job. --gpus and --gpu-type are flags of both commands.
ExactJob job_of(const SimulateOptions& options) {
  std::vector<std::string> words = options.job;
  if (options.gpus > 0) {
    words.insert(words.end(), {"--gpus", std::to_string(options.gpus)});
  }
  if (!options.gpu_type.empty()) {
    words.insert(words.end(), {"--gpu-type", options.gpu_type});
  }
  return described_job(words);
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
    WorkloadJob& job = workload.jobs.front();
    if (std::holds_alternative<OpTable>(job.work) && options.gpus != job.parallel.gpus) {
      throw Error(fmt::format("{} GPUs for a job of {}, whose operations are given rank by rank",
                              options.gpus, job.parallel.gpus))
          .at(options.workload)
          .field("--gpus")
          .expected(std::to_string(job.parallel.gpus))
          .hint("only a table of layers runs on other numbers; generate the workload anew");
    }
    job.parallel.gpus = options.gpus;
  }
  return workload;
}

bool has_tables(const Workload& workload) {
  return std::ranges::any_of(workload.jobs, [](const WorkloadJob& job) {
    return std::holds_alternative<LayerTable>(job.work);
  });
}

/// Without compute times AICB writes 1 (ns) in each phase.
bool has_placeholders_alone(const WorkloadJob& job) {
  const auto* table = std::get_if<LayerTable>(&job.work);
  return table != nullptr && !table->layers.empty() &&
         std::ranges::all_of(table->layers, [](const Layer& layer) {
           return std::max({layer.forward.compute, layer.input_grad.compute,
                            layer.weight_grad.compute}) <= Time::ns(1);
         });
}

/// --semantics megatron: every table of layers as the pipeline that it stands for.
void take_semantics(const SimulateOptions& options, Workload& workload) {
  for (WorkloadJob& each : workload.jobs) {
    if (options.semantics == "megatron" && std::holds_alternative<LayerTable>(each.work)) {
      try {
        each = megatron_pipeline(each);
      } catch (Error& error) {
        throw std::move(error).at(options.workload.empty() ? each.name : options.workload);
      }
    }
  }
}

/// Says so of what was given and only tables of layers heed: `tables`, whether the workload has
/// any, `layers`, whether they run layer by layer.
void warn_of_flags_of_tables(const SimulateOptions& options, bool tables, bool layers,
                             std::vector<std::string>& warnings) {
  const char* why = options.workload.empty()
                        ? "a model's step has chunks (--vpp), an order (--schedule) and messages "
                          "of its own"
                    : tables ? "the table of layers runs as a pipeline (--semantics megatron)"
                             : "the workload's operations have an order and messages of their own";
  for (const auto& [flag, is_ignored] :
       {std::pair("--chunks-per-stage", options.chunks_per_stage > 0 && !layers),
        std::pair("--semantics", options.semantics != SimulateOptions().semantics && !tables),
        std::pair("--pp-overlap", options.pp_overlap.has_value() && !layers)}) {
    if (is_ignored) {
      warnings.push_back(fmt::format("{} changes nothing: {}", flag, why));
    }
  }
}

/// The stragglers of --straggler and of the scenario, in this order; and the scenario's jobs behind
/// those of --beside.
void read_scenario(SimulateOptions& options) {
  options.stragglers.clear();
  for (const std::string& spec : options.straggler_specs) {
    options.stragglers.push_back(Straggler::parse(spec));
  }
  if (!options.scenario.empty()) {
    constexpr Bytes kMostYaml(1 << 24);  // its tree takes 75 times as much
    const FileText text(options.scenario, kMostYaml);
    Scenario scenario = parse_scenario(text.view(), options.scenario);
    for (Straggler& straggler : scenario.stragglers) {
      options.stragglers.push_back(std::move(straggler));
    }
    options.beside.insert(options.beside.end(), scenario.beside.begin(), scenario.beside.end());
  }
  options.keeps_rings = keep_rings(options.stragglers);
  options.fails_links = fail_links(options.stragglers);
}

}  // namespace

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
    throw usage_error(app.get_parent() != nullptr ? *app.get_parent() : app,
                      CLI::ExtrasError(app.get_name(), options.job));
  }
}

StepInput read_step_input(SimulateOptions& options) {
  read_scenario(options);
  StepInput input;
  if (options.workload.empty()) {
    input.job = job_of(options);
  }
  if (!options.topology.empty()) {
    input.topology = topology_from(options.topology, &input.warnings);
  }
  if (input.job) {
    if (input.topology) {
      take_gpu_type(*input.topology, *input.job);
    }
    input.job = worked_out(std::move(*input.job));
    input.workload = exact_workload_of(*input.job).workload;
    input.warnings.insert(input.warnings.end(), input.job->warnings.begin(),
                          input.job->warnings.end());
  } else {
    input.workload = load_workload(options, input.warnings);
    if (std::ranges::all_of(input.workload.jobs, has_placeholders_alone)) {
      input.warnings.push_back(
          "the workload has no compute times, only AICB's placeholder of 1 ns a layer, so that the "
          "step is communication alone (lockstep generate --aiob_enable takes times from a file)");
    }
  }
  add_beside(options, input.workload, input.warnings);
  const bool tables = has_tables(input.workload);
  take_semantics(options, input.workload);
  warn_of_flags_of_tables(options, tables, has_tables(input.workload), input.warnings);
  if (input.topology && input.job) {
    if (std::string others = other_gpus(*input.topology, input.job->job); !others.empty()) {
      input.warnings.push_back(std::move(others));
    }
    if (std::string links = other_nvlinks(*input.topology); !links.empty()) {
      input.warnings.push_back(std::move(links));
    }
  }
  if (input.topology && options.engine != "analytic" && options.flavour != "simai") {
    if (std::string note = taken_for_hopper(*input.topology); !note.empty()) {
      input.warnings.push_back(std::move(note));
    }
  }
  options.interference_model =
      interference_of_flag(options.interference, options.gpu_type,
                           input.topology ? &*input.topology : nullptr, input.warnings);
  return input;
}

std::function<RankMemory(std::int32_t stage)> memory_of(const ExactJob& job) {
  return [&job](std::int32_t index) {
    const StageMemory& stage = job.memory[static_cast<std::size_t>(index)];
    RankMemory memory;
    memory.always = stage.weights + stage.gradients + stage.optimizer;
    for (const KeptByChunk& chunk : stage.kept) {
      memory.kept.push_back(chunk.kept);
      memory.again.push_back(chunk.again);
    }
    memory.within_forward = stage.gathered;
    memory.within_backward = stage.working;
    return memory;
  };
}

}  // namespace lockstep
