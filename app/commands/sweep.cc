#include <memory>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/sweep/run_sweep.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep sweep tests/data/sweep/engines.yaml -o out
  lockstep sweep tests/data/sweep/engines.yaml --list
  mpirun -n 2 lockstep sweep grid.yaml -o out

docs/formats/grid.md says what a grid is, docs/scale-out.md how it is run.
)";

CommandBody define(CLI::App& app) {
  auto options = std::make_shared<SweepOptions>();
  app.add_option("grid", options->grid, "The grid (.yaml): a command, its flags and axes")
      ->required();
  app.add_option("-o,--output", options->output,
                 "Folder for journal.jsonl, table.csv and table.parquet; made if absent. A sweep "
                 "that was stopped or killed goes on from there")
      ->default_val("sweep");
  app.add_flag("--restart", options->restart, "Throw away the rows that are there");
  app.add_flag("--retry", options->retry, "Compute points again that did not end well")
      ->excludes("--restart");
  app.add_flag("--keep-files", options->keep,
               "Keep the files that the points write, in points/NUMBER");
  app.add_flag("--list", options->list, "Print the points' command lines, and run nothing");
  app.add_flag("--json", options->json, "Print the summary and the table as one JSON document");
  define_report_flags(app, options->report);
  return [options] { return run_sweep(*options); };
}

}  // namespace

extern const Command kSweepCommand;
const Command kSweepCommand{"sweep", "A grid of command lines, on many ranks, into one table",
                            kExamples, define};

}  // namespace lockstep
