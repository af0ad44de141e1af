#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/health.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/json.h"

namespace lockstep {
namespace {

std::string as_table(const std::vector<HealthCheck>& checks) {
  std::string text;
  for (const HealthCheck& check : checks) {
    text += fmt::format("{:<7} {:<14} {}\n", to_text(check.state), check.part, check.detail);
    if (!check.mend.empty()) {
      text += fmt::format("{:23}to mend it: {}\n", "", check.mend);
    }
  }
  return text;
}

std::string as_json(const std::vector<HealthCheck>& checks, bool healthy) {
  Json list = Json::array();
  for (const HealthCheck& check : checks) {
    list.push_back({{"part", check.part},
                    {"state", to_text(check.state)},
                    {"detail", check.detail},
                    {"mend", check.mend}});
  }
  return to_text(
      Json{{"schema", "lockstep-doctor/1"}, {"healthy", healthy}, {"checks", std::move(list)}});
}

CommandBody define(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON document");
  return [json] {
    const std::vector<HealthCheck> checks = examine_installation();
    const bool healthy = std::ranges::none_of(
        checks, [](const HealthCheck& check) { return check.state == HealthState::kBroken; });
    write_file("-", *json ? as_json(checks, healthy) : for_terminal(as_table(checks)));
    return healthy ? ExitCode::kDone : ExitCode::kMissingPart;
  };
}

}  // namespace

extern const Command kDoctorCommand;
const Command kDoctorCommand{"doctor", "Says which parts are here and how to mend what is not",
                             R"(Examples:
  lockstep doctor
  lockstep doctor --json

An absent part is no fault: the exit code is 0 unless a part is here and does not work (3).
)",
                             define};

}  // namespace lockstep
