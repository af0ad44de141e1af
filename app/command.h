#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "app/cli_fwd.h"
#include "base/error.h"

namespace lockstep {

/// What a command does once its flags are read.
using CommandBody = std::function<ExitCode()>;

/// One subcommand of `lockstep`: one file in app/commands.
struct Command {
  std::string_view name;
  std::string_view summary;   ///< one line
  std::string_view examples;  ///< shown at the end of --help; command lines that work
  /// Declares the flags on `app` and returns what to run if the command was chosen.
  CommandBody (*define)(CLI::App& app);
};

/// All commands, by file name.
std::span<const Command* const> commands();

}  // namespace lockstep
