#include "app/program.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/build_facts.h"
#include "app/command.h"
#include "app/flag_value.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/input_limit.h"
#include "base/kept_inputs.h"
#include "base/output_capture.h"

namespace lockstep {
namespace {

constexpr const char* kExamples = R"(Examples:
  lockstep topology build --template Spectrum-X -g 128 -o cluster.txt
  lockstep simulate --workload workloads/samples/gpt13b-128gpu-tp8.txt --topology cluster.txt --engine flow
  lockstep doctor

Each command's --help has its own. A file named '-' is standard input or output, but where a
name's ending tells a format.
Exit codes: 0 done, 1 a check you asked for failed, 2 bad input or usage, 3 a needed part is missing,
70 a bug of ours.)";

/// Those of the run on this thread, for program_arguments().
thread_local const std::vector<std::string>* current_arguments = nullptr;

/// Sets them for as long as it lives; runs nest.
struct CurrentArguments {
  const std::vector<std::string>* before = current_arguments;
  explicit CurrentArguments(const std::vector<std::string>& now) { current_arguments = &now; }
  ~CurrentArguments() { current_arguments = before; }
  CurrentArguments(const CurrentArguments&) = delete;
  CurrentArguments& operator=(const CurrentArguments&) = delete;
};

/// What every command takes.
struct CommonFlags {
  bool quiet = false;
  std::string max_input;
};

/// For a command, and for those below it.
void add_common_flags(CLI::App& app, CommonFlags& flags) {
  const auto below = app.get_subcommands([](CLI::App*) { return true; });
  if (below.empty() || app.get_require_subcommand_min() == 0) {
    app.add_flag("-q,--quiet", flags.quiet, "no progress, notes and warnings on standard error");
    app.add_option("--max-input", flags.max_input,
                   "how much a file, a pipe or what a packed file unpacks to may be\n"
                   "(default: $LOCKSTEP_MAX_INPUT, else 4GiB)");
  }
  for (CLI::App* sub : below) {
    add_common_flags(*sub, flags);
  }
}

ExitCode run(const std::vector<std::string>& arguments) {
  const CurrentArguments current(arguments);
  keep_inputs();
  CLI::App app("Predicts how long a training step of a large model takes on a GPU cluster.",
               "lockstep");
  app.require_subcommand(1);
  app.footer(kExamples);
  app.set_version_flag("--version", version_text);
  CommonFlags common;
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  for (const Command* command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    sub->footer(std::string(command->examples));
    bodies.emplace_back(sub, command->define(*sub));
    add_common_flags(*sub, common);
  }
  read_numbers_as_decimal(app);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    write_file("-", app.help());
    return ExitCode::kDone;
  } catch (const CLI::CallForVersion& version) {
    write_file("-", std::string(version.what()) + "\n");
    return ExitCode::kDone;
  } catch (const CLI::ParseError& problem) {
    check_dashes(app, arguments);
    throw usage_error(app, problem);
  }
  check_dashes(app, arguments);
  check_numbers(app);
  check_output_names(app, arguments);
  check_streams(app);
  const InputLimit limit(
      common.max_input.empty()
          ? std::nullopt
          : std::optional(flag_value("--max-input", common.max_input, parse_bytes)));
  const Silence silence(common.quiet && standard_error() == stderr);
  ExitCode code = ExitCode::kDone;
  for (const auto& [sub, body] : bodies) {
    if (!sub->parsed()) {
      continue;
    }
    try {
      code = body();
    } catch (const UnknownFlag& problem) {
      throw usage_error(*sub, problem);
    }
  }
  errno = 0;
  if (std::fflush(standard_output()) != 0 || std::ferror(standard_output()) != 0) {
    throw Error(fmt::format("cannot write: {}", std::strerror(errno))).at("standard output");
  }
  return code;
}

/// The one message of a run that failed.
ExitCode fail(ExitCode code, const std::string& text) {
  std::fputs(("lockstep: " + text + "\n").c_str(), standard_error());
  return code;
}

}  // namespace

std::vector<std::string> program_arguments() {
  return current_arguments == nullptr ? std::vector<std::string>() : *current_arguments;
}

ExitCode run_program(const std::vector<std::string>& arguments, bool* out_of_memory) {
  try {
    return run(arguments);
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    if (out_of_memory != nullptr) {
      *out_of_memory = true;
    }
    return fail(ExitCode::kBadInput, "out of memory: the input needs more than this machine has");
  } catch (const std::system_error& error) {
    return fail(ExitCode::kBadInput, error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::kBug, std::string(error.what()) +
                                    "\n  hint: this is a bug; please report it with the command");
  }
}

ProgramResult run_program_captured(const std::vector<std::string>& arguments) {
  const OutputCapture capture;
  ProgramResult result;
  result.code = run_program(arguments, &result.out_of_memory);
  result.out = capture.out();
  result.err = capture.err();
  return result;
}

}  // namespace lockstep
