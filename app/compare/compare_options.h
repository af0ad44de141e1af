#pragma once

#include <string>
#include <vector>

#include "analysis/compare/predict.h"
#include "app/cli_fwd.h"
#include "app/command.h"
#include "trace/physical_log.h"

namespace lockstep {

/// The flags that compare, calibrate and score share: what to take for granted about the cluster.
struct ClusterFlags {
  std::string preset, topology, nccl_version, op;
  std::int32_t gpus = 0, gpus_per_server = 0;
};
void define_cluster_flags(CLI::App& app, ClusterFlags& flags);

/// What they say to the model. ERRORS: Error naming the flag.
compare::CompareWishes wishes_of(const ClusterFlags& flags);

/// What these files hold, in order. ERRORS: those of read_logs; a file that is named twice.
std::vector<PhysicalLog> logs_of(const std::vector<std::string>& paths);
/// What the readers of these logs warn of, each with its file.
Warnings warnings_of(const std::vector<PhysicalLog>& logs);

/// The subcommands, which also go by their names alone.
CommandBody define_calibrate(CLI::App& app);
CommandBody define_health(CLI::App& app);
CommandBody define_score(CLI::App& app);

}  // namespace lockstep
