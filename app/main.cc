#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "base/error.h"

namespace {

using lockstep::ExitCode;

int fail(ExitCode code, const char* text) {
  fmt::print(stderr, "lockstep: {}\n", text);
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  CLI::App app("Predicts how long a training step of a large model takes on a GPU cluster.",
               "lockstep");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, lockstep::CommandBody>> bodies;
  for (const lockstep::Command* command : lockstep::commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    sub->footer(std::string(command->examples));
    bodies.emplace_back(sub, command->define(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    const int code = app.exit(problem);
    return code == 0 ? 0 : static_cast<int>(ExitCode::kBadInput);
  }
  for (const auto& [sub, body] : bodies) {
    if (sub->parsed()) {
      return static_cast<int>(body());
    }
  }
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lockstep::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kBadInput, "out of memory: the input needs more than this machine has");
  } catch (const std::exception& error) {
    return fail(ExitCode::kBug, error.what());
  }
}
