#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/build_facts.h"
#include "app/command.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/error.h"

namespace {

using lockstep::Error;
using lockstep::ExitCode;

constexpr const char* kExamples = R"(Examples:
  lockstep topology build --template Spectrum-X -g 128 -o cluster.txt
  lockstep simulate --workload workloads/samples/gpt13b-128gpu-tp8.txt --topology cluster.txt --engine flow
  lockstep doctor

Each command's --help has its own. A file named '-' is standard input or output.
Exit codes: 0 done, 1 a check you asked for failed, 2 bad input or usage, 3 a needed part is missing,
70 a bug of ours.)";

/// A standard stream closed by the caller would hand its number to the next file we open, and our
/// messages would land in that file. /dev/null opened the wrong way round holds the place: writing
/// to it fails, as it should.
void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app("Predicts how long a training step of a large model takes on a GPU cluster.",
               "lockstep");
  app.require_subcommand(1);
  app.footer(kExamples);
  app.set_version_flag("--version", lockstep::version_text);
  std::vector<std::pair<CLI::App*, lockstep::CommandBody>> bodies;
  for (const lockstep::Command* command : lockstep::commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    sub->footer(std::string(command->examples));
    bodies.emplace_back(sub, command->define(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    lockstep::write_file("-", app.help());
    return static_cast<int>(ExitCode::kDone);
  } catch (const CLI::CallForVersion& version) {
    lockstep::write_file("-", std::string(version.what()) + "\n");
    return static_cast<int>(ExitCode::kDone);
  } catch (const CLI::ParseError& problem) {
    throw lockstep::usage_error(app, problem);
  }
  ExitCode code = ExitCode::kDone;
  for (const auto& [sub, body] : bodies) {
    if (sub->parsed()) {
      code = body();
    }
  }
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(fmt::format("cannot write: {}", std::strerror(errno))).at("standard output");
  }
  return static_cast<int>(code);
}

/// The one message of a run that failed.
int fail(ExitCode code, const std::string& text) {
  std::fputs(("lockstep: " + text + "\n").c_str(), stderr);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  // "lockstep … | head" ends quietly, as any filter does, even if our parent ignored the signal.
  std::signal(SIGPIPE, SIG_DFL);
  hold_standard_streams();
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kBadInput, "out of memory: the input needs more than this machine has");
  } catch (const std::system_error& error) {
    return fail(ExitCode::kBadInput, error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::kBug, std::string(error.what()) +
                                    "\n  hint: this is a bug; please report it with the command");
  }
}
