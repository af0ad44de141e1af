#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/report_flags.h"
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
  bool microbatches_given = false;
  std::string cost = "strict";
  int max_tp = 0;  ///< 0: the GPUs of a server
  int max_stages = 16;
  double spare_mb = 0;                ///< kept free of each GPU's memory
  std::int64_t max_work = 0;          ///< of the search, in labels; 0: until proven
  std::string deadline;               ///< of the search, a time; empty: none
  std::string strategy = "search";    ///< or megatron: regular plans only
  std::string price;                  ///< a plan to price instead of a search
  std::string actual;                 ///< measurements to compare the prices of plans with
  std::vector<std::int64_t> scaling;  ///< layers of scale-layer to search for, one after the other
  std::int64_t top = 0;               ///< so many best plans; 0: the best and what else was met
  int threads = 0;                    ///< 0: one a core
  std::string resume;                 ///< journal of the search; empty: none
  std::string output;                 ///< folder for plans and tables
  bool json = false;
  ReportFlags report;
};

/// The flags of Metis's problem.
struct MetisOptions {
  std::string hostfile, clusterfile, profiles, model_profile;
  std::int64_t layers = 0, global_batch = 0;
  std::int64_t hidden = 4096, sequence = 1024, vocabulary = 51200;
  int max_tp = 4;
  std::int64_t max_batch = 4;
  std::string cost = "strict";
  std::string price;          ///< a plan to price instead of a search
  std::int64_t top = 0;       ///< so many best plans; 0: the best of each order and batches
  std::int64_t max_work = 0;  ///< of the search, in labels; 0: until proven
  std::string deadline;       ///< of the search, a time; empty: none
  int threads = 0;            ///< 0: one a core
  std::string resume;         ///< journal of the search; empty: none
  std::string output;         ///< folder for the ranking
  bool json = false;
  ReportFlags report;
};
ExitCode run_metis(const MetisOptions& options);

/// Prices one plan, or searches. ERRORS: Error naming the flag or file.
ExitCode run_aceso(const AcesoOptions& options);

}  // namespace lockstep
