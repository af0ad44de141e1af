#pragma once

#include <cstdint>
#include <string>

#include "app/cli_fwd.h"

namespace lockstep {

/// The flags of `lockstep run`.
struct RunOptionsCli {
  std::string workload, output, master, transport = "nccl", compute = "idle";
  std::int64_t world = 0, rank = -1, local_rank = -1, local_ranks = 0;
  std::int64_t iterations = 1, warmups = 0, layers = 0;
  std::int64_t tp = 0, ep = 0, pp = 0;  ///< 0: not given, 1
  std::int64_t byteps_first = 0, byteps_last = 9;
  double timeout_s = 120, tflops = 500;
  bool dry_run = false, json = false;
};

void add_run_options(CLI::App& app, RunOptionsCli& options);

}  // namespace lockstep
