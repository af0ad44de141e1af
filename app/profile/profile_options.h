#pragma once

#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "profiler/device.h"

namespace lockstep {

/// The flags of `lockstep profile` besides a job's.
struct ProfileOptions {
  std::string from;    ///< measurements to take in place of a GPU
  std::string jobs;    ///< file of the flags of a job on each line
  std::string output;  ///< folder
  bool list = false;   ///< what would be timed, without a GPU
  bool json = false, help = false;
  int gpu = 0;
  double limit_s = 0;  ///< for timing; 0: none
  TimingOptions timing;
  bool no_flush = false, no_search = false, no_load = false;
  bool sweep = false, interference = false;
  std::vector<std::int64_t> sweep_hidden, sweep_sequence, sweep_micro_batch, sweep_tp;
  std::string aceso_size;
  std::vector<std::int64_t> aceso_micro_batch{1}, aceso_tp{1};
  CLI::App* app = nullptr;
};

void add_profile_options(CLI::App& app, ProfileOptions& options);

}  // namespace lockstep
