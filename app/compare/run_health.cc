#include <cstdint>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/compare/health.h"
#include "app/compare/compare_options.h"
#include "app/terminal.h"
#include "app/warnings_out.h"
#include "base/atomic_file.h"
#include "base/error.h"

namespace lockstep {

CommandBody define_health(CLI::App& app) {
  struct Flags {
    std::vector<std::string> logs;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("logs", flags->logs, "logs of like tests on nodes or pairs of nodes")->required();
  app.add_flag("--json", flags->json, "one JSON document");
  return [flags] {
    std::vector<PhysicalLog> logs = logs_of(flags->logs);
    for (PhysicalLog& log : logs) {  // the rank that waits longest is the healthy one
      const auto left_out = static_cast<std::int64_t>(
          std::erase_if(log.comms, [](const CommRow& row) { return row.waits; }));
      if (left_out > 0) {
        log.warnings.add(fmt::format(
            "{} times of one rank were left out: they may include waiting for the others",
            left_out));
      }
    }
    const Warnings of_logs = warnings_of(logs);
    print_warnings(of_logs);
    compare::Health health = compare::check_health(logs);
    if (health.tests.empty()) {
      throw Error("the logs hold no collectives whose times can be compared")
          .at(flags->logs.front());
    }
    Warnings unsure;
    for (const std::string& warning : health.warnings) {
      unsure.add(warning);
    }
    print_warnings(unsure);
    for (const Warnings::Entry& entry : of_logs.entries()) {
      health.warnings.push_back(entry.text);
    }
    write_file("-", flags->json ? compare::health_json(health)
                                : for_terminal(compare::health_table(health)));
    return ExitCode::kDone;
  };
}

}  // namespace lockstep
