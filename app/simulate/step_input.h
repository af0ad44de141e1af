#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "app/generate_exact.h"
#include "app/simulate/simulate_options.h"
#include "simulator/replay/memory_timeline.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// What a step is simulated of, as the flags of `lockstep simulate` say.
struct StepInput {
  std::optional<ExactJob> job;  ///< of a model; nothing: the workload is a file's
  Workload workload;            ///< with the jobs of --beside
  std::optional<Topology> topology;
  std::vector<std::string> warnings;
};

/// After the parsing: words that are no flags of ours describe a job, if there is no workload file.
/// ERRORS: neither is given, or both.
void take_job(CLI::App& app, SimulateOptions& options);

/// Reads and builds all of it; the options' stragglers and interference model are those of their
/// files and texts then. ERRORS: those of the files, the job and the topology.
StepInput read_step_input(SimulateOptions& options);

/// What the ranks of a stage hold, for SimulateOptions::memory. `job` must outlive it.
std::function<RankMemory(std::int32_t stage)> memory_of(const ExactJob& job);

}  // namespace lockstep
