#include "app/simulate/run_analytic.h"

#include <fmt/format.h>

#include "app/simulate/analytic_topology.h"
#include "base/error.h"
#include "generator/compute/gpu_spec.h"
#include "simulator/replay/analytic_replay.h"
#include "simulator/replay/analytic_step.h"
#include "simulator/replay/parallel_groups.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

/// Every rank waits for the slowest, so all computation takes its factor.
LayerTable slowed(LayerTable table, Parallelism parallel, const AnalyticOptions& analytic,
                  const SimulateOptions& options) {
  parallel.gpus = analytic.gpus > 0 ? analytic.gpus : parallel.gpus;
  const std::vector<CommFamily> families = parallel_groups(parallel);
  StragglerContext context;
  context.families = families;
  for (std::int64_t rank = 0; rank < parallel.gpus; ++rank) {
    context.server_of_rank.push_back(static_cast<std::int32_t>(rank / analytic.gpus_per_server));
  }
  context.seed = options.seed;
  context.step = options.step;
  const double factor = StragglerPlan(options.stragglers, context).slowest();
  for (Layer& layer : table.layers) {
    for (LayerPhase* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
      phase->compute = Time::seconds(phase->compute.seconds() * factor);
    }
  }
  return table;
}

/// What is said of flags that change nothing here. ERRORS: one that asks for what is not here.
std::vector<std::string> flag_warnings(const SimulateOptions& options) {
  std::vector<std::string> typed = flags_beside_formulas(options);
  if (!options.interference.empty()) {
    typed.emplace_back("--interference");
  }
  return unheeded_by_formulas(typed);
}

}  // namespace

StepResult run_analytic(const Workload& workload, const Topology* topology,
                        const SimulateOptions& options) {
  const WorkloadJob& job = workload.jobs.front();
  const auto* table = std::get_if<LayerTable>(&job.work);
  if (workload.jobs.size() != 1) {
    throw Error("the analytic engine has formulas for one job only")
        .at(options.workload)
        .hint("--engine flow simulates several jobs");
  }
  if (table == nullptr && options.flavour == "simai") {
    throw Error("SimAI's formulas are those of a table of layers")
        .field("--flavour")
        .expected("default")
        .hint("'lockstep generate --generator simai-training' writes such a table");
  }
  std::vector<std::string> warnings = flag_warnings(options);
  if (table == nullptr &&
      (options.dp_overlap > 0 || options.tp_overlap > 0 || options.ep_overlap > 0)) {
    warnings.emplace_back(
        "--dp-overlap, --tp-overlap and --ep-overlap change nothing: a model's operations overlap "
        "as they wait for each other");
  }
  AnalyticOptions analytic;
  if (topology != nullptr) {
    const std::vector<NodeId>& all = topology->gpus();
    const std::int64_t used = options.gpus > 0 ? options.gpus : job.parallel.gpus;
    const auto known = static_cast<std::size_t>(used > 0 ? used : std::ssize(all));
    if (known > all.size()) {
      warnings.push_back(fmt::format(
          "the topology has {} GPUs, but the workload needs {}: the analytic engine takes its "
          "rates alone, as if it went on in the same way",
          all.size(), known));
    }
    take_from_topology(*topology, std::span(all).first(std::min(known, all.size())), analytic);
  }
  const auto flag = [](const char* name, const std::string& text, auto parse, auto& value) {
    if (!text.empty()) {
      try {
        value = parse(text);
      } catch (Error& error) {
        throw std::move(error).field(name);
      }
    }
  };
  analytic.flavour = parse_flavour(options.flavour);
  analytic.gpus = options.gpus;
  if (analytic.gpus == 0 && job.parallel.gpus == 0 && topology != nullptr) {
    analytic.gpus = topology->count(NodeKind::kGpu);
  }
  // The topology's NICs of a GPU are those of its servers.
  if (options.gpus_per_server > 0 && options.gpus_per_server != analytic.gpus_per_server) {
    analytic.gpus_per_server = options.gpus_per_server;
    analytic.nics_per_gpu.reset();
  }
  if (options.nics_per_server > 0) {
    analytic.nics_per_server = options.nics_per_server;
    analytic.nics_per_gpu.reset();
  }
  flag("--nvlink", options.nvlink, parse_bandwidth, analytic.nvlink);
  flag("--nic", options.nic, parse_bandwidth, analytic.nic);
  try {
    flag("--gpu-type", options.gpu_type, parse_gpu_type, analytic.gpu);
  } catch (const Error&) {
    // Of another type that is known, a B200 say, the links may be told otherwise.
    if (!analytic.nvlink || find_gpu_spec(options.gpu_type) == nullptr) {
      throw;
    }
  }
  flag("--nic-type", options.nic_type, parse_nic_type, analytic.nic_type);
  if (!options.nic_type.empty() && options.nic.empty()) {
    analytic.nic.reset();  // in place of the topology's
  }
  analytic.overlap = {options.dp_overlap, options.ep_overlap, options.tp_overlap,
                      options.pp_overlap};
  if (options.chunks_per_stage > 0) {
    analytic.chunks_per_stage = options.chunks_per_stage;
  }
  if (!options.busbw.empty()) {
    analytic.measured = read_busbw_yaml(options.busbw);
  }
  if (!options.ratios.empty()) {
    analytic.efficiency = read_efficiency_dir(options.ratios);
  }
  StepResult result;
  if (table == nullptr) {
    result = analytic_replay(workload, analytic, {options.stragglers, options.seed, options.step});
  } else if (options.stragglers.empty()) {
    result = analytic_step(*table, job.parallel, analytic);
  } else {
    result = analytic_step(slowed(*table, job.parallel, analytic, options), job.parallel, analytic);
  }
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  return result;
}

}  // namespace lockstep
