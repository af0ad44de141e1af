#include <memory>

#include <CLI/CLI.hpp>

#include "analysis/compare/health.h"
#include "app/compare/compare_options.h"
#include "app/warnings_out.h"
#include "base/atomic_file.h"
#include "trace/log_reader.h"

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
    std::vector<PhysicalLog> logs;
    for (const std::string& path : flags->logs) {
      for (PhysicalLog& log : read_logs(path)) {
        print_warnings(log.warnings);
        logs.push_back(std::move(log));
      }
    }
    const compare::Health health = compare::check_health(logs);
    if (health.tests.empty()) {
      throw Error("the logs hold no collectives").at(flags->logs.front());
    }
    write_file("-", flags->json ? compare::health_json(health) : compare::health_table(health));
    return ExitCode::kDone;
  };
}

}  // namespace lockstep
