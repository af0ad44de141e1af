#include <memory>

#include <CLI/CLI.hpp>

#include "analysis/compare/health.h"
#include "app/compare/compare_options.h"
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
    const std::vector<PhysicalLog> logs = logs_of(flags->logs);
    print_warnings(logs);
    const compare::Health health = compare::check_health(logs);
    if (health.tests.empty()) {
      throw Error("the logs hold no collectives").at(flags->logs.front());
    }
    write_file("-", flags->json ? compare::health_json(health) : compare::health_table(health));
    return ExitCode::kDone;
  };
}

}  // namespace lockstep
