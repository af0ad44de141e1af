#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/compare/run_compare.h"

namespace lockstep {
namespace {

CommandBody define(CLI::App& app) {
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  const auto add = [&](const char* name, const char* summary, CommandBody (*part)(CLI::App&)) {
    CLI::App* sub = app.add_subcommand(name, summary);
    bodies.emplace_back(sub, part(*sub));
  };
  add("calibrate", "Fits the model to logs of a cluster and writes a preset", define_calibrate);
  add("score", "The error on all measurements of a folder", define_score);
  add("health", "Slow nodes, cables and misconfigurations in logs of like tests", define_health);
  CommandBody own = define_comparison(app);
  return [bodies, own] {
    for (const auto& [sub, body] : bodies) {
      if (sub->parsed()) {
        return body();
      }
    }
    return own();
  };
}

}  // namespace

extern const Command kCompareCommand;
const Command kCompareCommand{"compare",
                              "Logs of real runs beside predictions: how far off, where and why",
                              R"(Examples:
  lockstep compare all_reduce_perf.log --preset dgx-h100
  lockstep compare tests/data/logs/two-tables.txt --fail-over 30% --picture curves.svg
  lockstep compare all_reduce_perf.log --topology Spectrum-X:g=16 --json
  lockstep compare tests/fuzz/corpus/megatron/train.log --topology Spectrum-X:g=8
  lockstep compare calibrate *.log -o mine.json
  lockstep compare score measurements
  lockstep compare health pairwise/*.log
)",
                              define};

}  // namespace lockstep
