#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "app/network_flags.h"
#include "app/report_flags.h"
#include "simulator/replay/memory_timeline.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_detail.h"
#include "simulator/replay/straggler.h"
#include "trace/job_meta.h"
#include "trace/trace.h"

namespace lockstep {

struct KeptStep;
class SharedStep;

/// The flags of `lockstep simulate`, as typed. Quantities stay text until the engine is known.
struct SimulateOptions : NetworkFlags {
  std::string workload, topology;
  std::vector<std::string> job;  // words that describe a model and a job instead of a workload
  std::string engine = "flow", semantics = "simai", flavour = "default";
  std::string fct_file, pfc_file, error_budget, traffic_class;
  std::uint64_t seed = 1;

  std::int64_t gpus = 0;
  std::int64_t chunks_per_stage = 0;                      // 0: the workload's vpp
  std::int64_t gpus_per_server = 0, nics_per_server = 0;  // 0: from the topology, else 8
  std::string nvlink, nic, gpu_type, nic_type, busbw, ratios;
  double dp_overlap = 0, ep_overlap = 0, tp_overlap = 0;
  std::optional<double> pp_overlap;
  std::string interference;
  Interference interference_model;  // that of the flag, once read

  std::vector<std::string> straggler_specs;
  std::string scenario;
  bool list_stragglers = false, no_straggler_prices = false;
  std::vector<Straggler> stragglers;  // those of both, once read
  bool keeps_rings = false;           // any of them does; runs that share what is laid out agree
  bool fails_links = false;           // likewise: prices compare runs by one law
  std::int64_t steps = 1, step = 0;   // step: the one that is simulated
  int threads = 0;                    // 0: as many as there are cores
  Trace* rows = nullptr;              // filled with the step in what-if columns
  JobMeta* meta = nullptr;
  KeptStep* kept = nullptr;      // StepOptions::kept, and schedules
  SharedStep* shared = nullptr;  // StepOptions::shared, with_ports
  bool with_ports = true;
  std::function<RankMemory(std::int32_t stage)> memory;  // what ranks hold, where it is known
  bool memory_over_time = false;
  std::string memory_csv;
  bool explain = false, sensitivity = false;
  std::vector<std::string> beside;  // further workloads whose jobs share the cluster
  bool job_matrix = false;
  bool quiet = false;         // one of several runs: no progress
  ReplayLimits limits;        // of one of several runs
  double latency_factor = 1;  // of what NCCL's operations and hops take beside the links' delays

  std::string csv_dir, csv_prefix, trace, byteps_trace;
  std::int32_t trace_ranks = 8;
  std::string trace_workers = "all";  // or first: of tensor- and context-parallel groups
  bool no_symmetry = false, verify_symmetry = false, paranoid = false;
  bool json = false;
  bool detail_wanted = false;  // --detail
  double gpu_hour_price = 0;
  StepDetail* detail = nullptr;  // filled with the step
  ReportFlags output;
};

/// Declares the flags; `options` must outlive the parsing.
void define_simulate_options(CLI::App& app, SimulateOptions& options);

}  // namespace lockstep
