#include "app/profile/profile_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

void add_profile_options(CLI::App& app, ProfileOptions& options) {
  options.app = &app;
  app.set_help_flag();
  app.allow_extras();  // a job's flags: their own table reads them
  app.add_option("-o,--output", options.output, "Folder for all files; made if it is not there");
  app.add_flag("--list", options.list, "Print what would be timed, and end; needs no GPU");
  app.add_option("--from", options.from,
                 "Take the times from this file of measurements, not from a GPU");
  app.add_option(
      "--jobs", options.jobs,
      "Profile all jobs of this file, flags of one on each line, each into a folder of its name");
  app.add_option(
         "--limit", options.limit_s,
         "Begin no further job (of --sweep and --aceso-size: operator) after so many seconds; "
         "0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--device", options.gpu, "The GPU's number")
      ->check(CLI::Range(0, 1 << 10))
      ->capture_default_str();
  app.add_option("--samples", options.timing.samples, "Runs of each operator that count")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--warmups", options.timing.warmups,
                 "Runs before them, of an operator by itself (--sweep, --aceso-size, --no-load)")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_flag("--no-flush", options.no_flush,
               "Of an operator by itself: leave the L2 cache as the run before left it");
  app.add_flag("--no-load", options.no_load,
               "Time each operator alone, with pauses, at the GPU's highest clock; else a job's "
               "operators take turns, at the clock that their power leaves");
  app.add_flag("--no-search", options.no_search,
               "Take the first candidate of the library's heuristics for products");
  app.add_flag("--json", options.json, "Print the measurements as one JSON document");
  app.add_flag("--sweep", options.sweep,
               "Time a grid of shapes and fit the roofline's efficiencies to half of it");
  const auto grid = [&](const char* name, std::vector<std::int64_t>& values, const char* what) {
    app.add_option(name, values, what)
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
        ->group("Grid of --sweep");
  };
  grid("--sweep-hidden", options.sweep_hidden, "default: 2048,4096,8192");
  grid("--sweep-seq", options.sweep_sequence, "default: 1024,2048,4096");
  grid("--sweep-mbs", options.sweep_micro_batch, "default: 1,2,4");
  grid("--sweep-tp", options.sweep_tp, "default: 1,2,4,8");
  app.add_flag("--interference", options.interference,
               "Time products beside copies: the slowdown of both by the copy's thread blocks");
  app.add_option("--aceso-size", options.aceso_size,
                 "Write Aceso's op tables of this GPT: 350M, 1_3B, 2_6B, 6_7B, 13B, scale-layer")
      ->group("Aceso");
  app.add_option("--aceso-mbs", options.aceso_micro_batch, "Microbatches, default: 1")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 16))
      ->group("Aceso");
  app.add_option("--aceso-tp", options.aceso_tp, "Tensor-parallel degrees, default: 1")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->group("Aceso");
  app.add_flag("-h,--help", options.help, "This, and the flags of a job");
}

}  // namespace lockstep
