#include "app/simulate/run_analytic.h"

#include "app/simulate/analytic_topology.h"
#include "base/error.h"
#include "simulator/replay/analytic_step.h"

namespace lockstep {
StepResult run_analytic(const Workload& workload, const Topology* topology,
                        const SimulateOptions& options) {
  const WorkloadJob& job = workload.jobs.front();
  const auto* table = std::get_if<LayerTable>(&job.work);
  if (table == nullptr || workload.jobs.size() != 1) {
    throw Error("the analytic engine has formulas for one job with a table of layers only")
        .at(options.workload)
        .hint("--engine flow simulates rank-by-rank work and several jobs");
  }
  AnalyticOptions analytic;
  if (topology != nullptr) {
    take_from_topology(*topology, analytic);
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
  analytic.gpus_per_server =
      options.gpus_per_server > 0 ? options.gpus_per_server : analytic.gpus_per_server;
  analytic.nics_per_server =
      options.nics_per_server > 0 ? options.nics_per_server : analytic.nics_per_server;
  flag("--nvlink", options.nvlink, parse_bandwidth, analytic.nvlink);
  flag("--nic", options.nic, parse_bandwidth, analytic.nic);
  flag("--gpu-type", options.gpu_type, parse_gpu_type, analytic.gpu);
  flag("--nic-type", options.nic_type, parse_nic_type, analytic.nic_type);
  if (options.chunks_per_stage > 0) {
    analytic.chunks_per_stage = options.chunks_per_stage;
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
  return analytic_step(*table, job.parallel, analytic);
}

}  // namespace lockstep
