#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/whatif/run_whatif.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep whatif --trace tests/data/whatif/two-stages.csv --meta tests/data/whatif/two-stages.yaml -o out
  lockstep whatif --trace trace.parquet --meta meta.yaml --steps 16-40 403 -o out
  lockstep whatif --trace trace.parquet --meta meta.yaml -o out --set 'forward-compute[stage=3] *= 0.8'
  lockstep whatif --follow traces/ --meta meta.yaml -o out --alert-slowdown 1.2 --alert-steps 5
)";

CommandBody define(CLI::App& app) {
  auto options = std::make_shared<WhatIfOptions>();
  auto* trace =
      app.add_option("--trace", options->traces,
                     "Trace of training steps: .parquet or .csv; several files are one job")
          ->expected(1, -1);
  app.add_option("--meta", options->meta, "The job's meta file (.yaml)")->required();
  app.add_option("-o,--output", options->output, "Folder for the results; made if absent")
      ->required();
  auto* steps =
      app.add_option("--steps,--step", options->steps,
                     "Steps to keep: numbers and ranges (16-40, ends included); all unless given");
  steps->expected(1, -1);
  app.add_option("--decompose-threshold,--decompose-thres", options->decompose_threshold,
                 "Slowdowns below it are not taken apart")
      ->capture_default_str();
  app.add_option("--workers", options->workers,
                 "How slow a worker makes the job: exact (it alone, simulated) or min (the "
                 "artifact's approximation) in causes-NAME.json")
      ->check(CLI::IsMember({"exact", "min"}))
      ->capture_default_str();
  app.add_option(
         "--set", options->edits,
         "What if? Operations and their time: 'forward-compute[stage=3] *= 0.8', 'pp-comm = "
         "0'; may be given more than once")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--timelines", options->timelines,
                 "Forms of the two timelines: json (Chrome trace, .json.gz), perfetto (protobuf, "
                 "packed too: 20 "
                 "times smaller than the JSON, five than .json.gz), none")
      ->check(CLI::IsMember({"json", "perfetto", "none"}))
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--json", options->json,
               "Print the causes as one JSON document; with --follow, events as JSON lines");
  define_report_flags(app, options->report);
  app.add_flag("--drop-incomplete-steps", options->drop_incomplete_steps,
               "Leave out steps that lack operations, instead of an error");
  auto* following =
      app.add_option("--follow", options->follow,
                     "Folder in which trace files land while the job runs: each is analysed when "
                     "it is there, until Ctrl-C")
          ->excludes(trace)
          ->excludes(steps);
  for (const char* flag : {"--set", "--report", "--figure"}) {
    following->excludes(app.get_option(flag));
  }
  app.add_flag("--once", options->once, "With --follow: what lies there now, and no more")
      ->needs(following);
  app.add_option("--alert-slowdown", options->alert_slowdown,
                 "With --follow: a step is slow if it takes so many times the ideal")
      ->check(CLI::Range(1.0, 1e6))
      ->needs(following)
      ->capture_default_str();
  app.add_option("--alert-steps", options->alert_steps,
                 "With --follow: so many slow steps in a row raise an alert, so many others end it")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->needs(following)
      ->capture_default_str();
  app.add_option("--poll", options->poll_ms, "With --follow: milliseconds between two looks")
      ->check(CLI::Range(std::int64_t{10}, std::int64_t{86'400'000}))
      ->needs(following)
      ->capture_default_str();
  app.add_option("--settle", options->settle_ms,
                 "With --follow: milliseconds without change after which a file is whole")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86'400'000}))
      ->needs(following)
      ->capture_default_str();
  app.callback([options] {
    if (options->traces.empty() && options->follow.empty()) {
      throw CLI::RequiredError("--trace (or --follow)");
    }
  });
  return [options] { return run_whatif(*options); };
}

}  // namespace

extern const Command kWhatifCommand;
const Command kWhatifCommand{"whatif",
                             "How much faster a job would run without stragglers, and who they are",
                             kExamples, define};

}  // namespace lockstep
