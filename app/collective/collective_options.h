#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "app/network_flags.h"
#include "base/units.h"

namespace lockstep {

/// The flags of `lockstep collective`, as typed.
struct CollectiveOptions : NetworkFlags {
  std::string op, size = "8B:1GiB", sweep, topology, placement = "first", split;
  std::int64_t gpus = 0;     ///< 0: all of the topology
  std::vector<Bytes> sizes;  ///< of callers that have a list; no flag
  std::int32_t root = 0;
  std::vector<std::string> engines = {"flow"};
  std::string flavour = "default";

  std::string algorithm_file;

  std::string jitter;
  std::vector<std::string> stragglers;
  std::uint64_t seed = 1;
  std::string nvlink, nic;
  bool no_symmetry = false, no_fast_forward = false, verify_symmetry = false, paranoid = false;
  std::string error_budget;  ///< empty: none
  int threads = 0;           ///< 0: as many as there are cores
  bool json = false;
};

/// Declares the flags; `options` must outlive the parsing.
void define_collective_options(CLI::App& app, CollectiveOptions& options);

}  // namespace lockstep
