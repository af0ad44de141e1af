#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

/// The flags of `lockstep plan`, Aceso's problem.
struct AcesoOptions {
  std::string model, size, profiles;
  std::int64_t layers = 0;  ///< of scale-layer
  int gpus_per_node = 8, nodes = 1;
  double memory_limit_mb = 28000;
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> microbatches = {1, 2, 4, 8};
  std::string cost = "strict";
  std::string price;   ///< a plan to price instead of a search
  std::string output;  ///< folder for plans and tables
  bool json = false;
};

/// Prices one plan, or searches. ERRORS: Error naming the flag or file.
ExitCode run_aceso(const AcesoOptions& options);

}  // namespace lockstep
